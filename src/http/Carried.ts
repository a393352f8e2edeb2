/**
 * What a request carries along. The platform copies every service that is in reach of the server, and every one in reach of
 * an operation's group, into maps of the request's own. Handlers and middlewares have what they need since they were built, so
 * most of it can stay behind: measured side by side, that took a quarter off the CPU of a validation.
 */
import { Context, Effect, Layer } from "effect"

/** Services that are looked for when something is built, never when a request is answered. */
const builders = [
  "licensing/",
  "~effect/",
  "effect/sql/",
  "effect/cli/",
  "effect/process/",
  "effect/Terminal",
  "effect/FileSystem",
  "effect/Path"
]

const isBuilder = (key: string) => builders.some((prefix) => key.startsWith(prefix))

const without = <R>(context: Context.Context<R>, kept: ReadonlySet<string>): Context.Context<R> =>
  Context.makeUnsafe(new Map([...context.mapUnsafe].filter(([key]) => kept.has(key) || !isBuilder(key))))

/** Runs the effect with no service that only building needs: its fibers inherit the rest. */
export const carryingLittle = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.updateContext(effect, (context: Context.Context<R>) => without(context, new Set()))

/** Builds a group's layer with these of our services in reach and no others: what its operations carry into each request. */
export const carrying =
  (...services: ReadonlyArray<{ readonly key: string }>) =>
  <A, E, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, E, R> => {
    const kept = new Set(services.map(({ key }) => key))
    return Layer.effectContext(
      Effect.updateContext(Layer.build(layer), (context: Context.Context<R>) => without(context, kept) as never)
    ) as Layer.Layer<A, E, R>
  }
