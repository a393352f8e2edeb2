/** The service as its typed client gives it, in effects that the page runs. */
import { Clock, Effect, Layer, Redacted } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { Atom } from "effect/reactivity"
import { statuses } from "../../api/ErrorCode.ts"
import { isRefusal } from "../../api/Failure.ts"
import {
  Client,
  type ClientError,
  type OperationId,
  type Refusals,
  type Request,
  type Success
} from "../../client/Client.ts"
import { registry, session, signOut } from "./Session.ts"

const clientOf = (token: Redacted.Redacted<string>, attemptsMax = 2) =>
  Client.layer({ baseUrl: location.origin, token, attemptsMax }).pipe(
    Layer.provide(FetchHttpClient.layer),
    // The page records no traces, so that requests need no trace headers.
    Layer.provideMerge(Layer.succeed(HttpClient.TracerPropagationEnabled, false))
  )

/** Runs effects with the client of who is signed in. Another token is another client: nothing of the earlier one stays. */
export const runtime = Atom.runtime((get) => clientOf(get(session).token ?? Redacted.make("")))

export type Failed<Id extends OperationId> = Refusals<Id> | ClientError

/** The body of an operation's request. */
export type Payload<Id extends OperationId> =
  Request<Id> extends { readonly payload?: infer Body } ? NonNullable<Body> : never

/** Nothing if an operation knows all query parameters of a request, also those that are spread into it. */
export type Known<Id extends OperationId, Given> = Given extends { readonly query: infer Query }
  ? Request<Id> extends { readonly query?: infer Parameters }
    ? {
        readonly query: { readonly [Name in keyof Query]: Name extends keyof NonNullable<Parameters> ? unknown : never }
      }
    : never
  : unknown

/** Calls an operation. */
export const send = <Id extends OperationId>(id: Id, request: Request<Id>) =>
  Client.use((client) => {
    const operation = client[id] as unknown as (request: Request<Id>) => Effect.Effect<Success<Id>, Failed<Id>>
    return operation(request)
  })

/** Runs effects that send every request once and decide themselves what to send again. */
export const runSendingOnce = <A, E>(effect: Effect.Effect<A, E, Client>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, clientOf(registry.get(session).token ?? Redacted.make(""), 1)))

/** A token that is no longer valid ends the session. */
export const endingSession = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.tapError(effect, (error) =>
    Effect.sync(() => {
      if (isRefusal(error) && statuses[error.code] === 401) signOut(error.message)
    })
  )

/** Asks what a token is, before anybody is signed in with it. */
export const inspect = (token: Redacted.Redacted<string>) =>
  Effect.runPromiseExit(Effect.provide(send("getMe", {}), clientOf(token)))

/** The time of day, in milliseconds. */
export const now = (): number => Effect.runSync(Clock.currentTimeMillis)
