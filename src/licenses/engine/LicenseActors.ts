/**
 * One actor per license in use: a mailbox, the license's state in memory, and at most one round under way. A round takes all
 * that waits, decides it and commits what changed as one; answers leave only after that.
 *
 * Actors cost a map entry: no fiber, no timer. One that was not used for a while is forgotten; its next command loads it again.
 */
import { Clock, Context, Effect, Exit, FiberSet, identity, Layer, Result, Schedule } from "effect"
import type { Code } from "../../api/ErrorCode.ts"
import { type Refusal, refuse } from "../../api/Failure.ts"
import { RequestContext } from "../../api/RequestContext.ts"
import { StoredResponse } from "../../api/StoredResponse.ts"
import { CurrentActor } from "../../auth/CurrentActor.ts"
import type { Origin, Rule } from "../rules/LicenseCommand.ts"
import { type CachedLicense, makeCommandBatches } from "./CommandBatch.ts"
import { type CommandResult, type PendingCommand, pendingCommand } from "./PendingCommand.ts"

/** Commands that may wait for one license; more are answered with 503, never queued without bound. */
const mailboxMax = 1024
/** Commands decided in one round: bounds its commit. */
const roundMax = 256
/** Actors in memory; the least recently used beyond are forgotten at the next tidying. */
const actorsMax = 20_000
/** An actor unused for this long is forgotten. */
const idleMillis = 300_000

interface Actor extends CachedLicense {
  readonly mailbox: Array<PendingCommand>
  running: boolean
  usedAt: number
}

type Asked<A, C extends Code> = Effect.Effect<A, Refusal<C> | Refusal<"NOT_FOUND" | "NOT_READY">>

export class LicenseActors extends Context.Service<
  LicenseActors,
  {
    /** Has the license's actor decide a command, on behalf of the current actor and request. */
    ask<Command, Reply, C extends Code>(
      licenseId: string,
      rule: Rule<Command, Reply, C>,
      command: NoInfer<Command>
    ): Asked<Reply, C>
    /**
     * The same; `begin` starts on the reply what may run while it is being committed. `finish` makes the handler's result of
     * that: after the commit, or just before it where the answer is kept with the change.
     */
    askWith<Command, Reply, C extends Code, Begun, A>(
      licenseId: string,
      rule: Rule<Command, Reply, C>,
      command: NoInfer<Command>,
      begin: (reply: Reply) => Begun,
      finish: (begun: Begun) => Effect.Effect<A>
    ): Asked<A, C>
    /** The same for whoever is no fiber: puts a letter into the license's mailbox. */
    post(licenseId: string, letter: PendingCommand): void
    /** Actors in memory and commands waiting, for metrics. */
    readonly load: Effect.Effect<{ readonly actors: number; readonly waiting: number }>
  }
>()("licensing/licenses/engine/LicenseActors") {
  static readonly layer = Layer.effect(
    LicenseActors,
    Effect.gen(function* () {
      const rounds = yield* makeCommandBatches
      const fork = yield* FiberSet.makeRuntime<never>()
      const clock = yield* Clock.Clock
      const actors = new Map<string, Actor>()

      const answered = (
        letters: ReadonlyArray<PendingCommand>,
        exit: Exit.Exit<ReadonlyArray<CommandResult>>
      ): void => {
        for (const [index, letter] of letters.entries()) {
          letter.resume(Exit.isSuccess(exit) ? exit.value[index]! : exit)
        }
      }

      /** Goes on after a round. Whatever went wrong in it is the answer to all of it, and the state is dropped. */
      const goOn = (
        actor: Actor,
        letters: ReadonlyArray<PendingCommand>,
        exit: Exit.Exit<ReadonlyArray<CommandResult>>
      ): void => {
        if (Exit.isFailure(exit)) actor.state = undefined
        if (actor.mailbox.length === 0) {
          actor.usedAt = clock.currentTimeMillisUnsafe()
          actor.running = false
          answered(letters, exit)
          return
        }
        // The next round is handed in before this one's answers are worked on.
        start(actor)
        fork(
          Effect.andThen(
            Effect.yieldNow,
            Effect.sync(() => answered(letters, exit))
          )
        )
      }

      /** A round that has to look things up, or was decided in vain. */
      const work = (actor: Actor, letters: ReadonlyArray<PendingCommand>, tried: number) =>
        fork(Effect.map(Effect.exit(rounds.round(actor, letters, tried)), (exit) => goOn(actor, letters, exit)))

      /** Begins a round of what waits. */
      const start = (actor: Actor): void => {
        const letters = actor.mailbox.splice(0, roundMax)
        const begun = rounds.begin(actor, letters, (outcome) => {
          if (Exit.isFailure(outcome)) goOn(actor, letters, Exit.failCause(outcome.cause))
          else if (outcome.value !== "stale") goOn(actor, letters, Exit.succeed(outcome.value))
          else {
            actor.state = undefined
            work(actor, letters, 1)
          }
        })
        if (Result.isFailure(begun)) goOn(actor, letters, Exit.die(begun.failure))
        else if (!begun.success) work(actor, letters, 0)
      }

      let called: Array<Actor> = []
      /** One turn of the scheduler, so that all who ask in the same turn share the round. */
      const turn = Effect.andThen(
        Effect.yieldNow,
        Effect.sync(() => {
          const actors = called
          called = []
          for (const actor of actors) start(actor)
        })
      )

      const actorOf = (licenseId: string): Actor => {
        const known = actors.get(licenseId)
        if (known !== undefined) return known
        const actor: Actor = { licenseId, mailbox: [], state: undefined, running: false, usedAt: 0 }
        actors.set(licenseId, actor)
        return actor
      }

      const post = (licenseId: string, letter: PendingCommand): void => {
        const actor = actorOf(licenseId)
        if (actor.mailbox.length >= mailboxMax) {
          letter.resume(Exit.fail(refuse("NOT_READY", "Too many requests wait for this license: try again.")))
          return
        }
        actor.mailbox.push(letter)
        if (actor.running) return
        actor.running = true
        called.push(actor)
        if (called.length === 1) fork(turn)
      }

      const tidy = Effect.sync(() => {
        const now = clock.currentTimeMillisUnsafe()
        const idle = Array.from(actors.values()).filter((actor) => !actor.running)
        const surplus = actors.size - actorsMax
        const oldest = surplus > 0 ? idle.toSorted((a, b) => a.usedAt - b.usedAt).slice(0, surplus) : []
        for (const actor of [...oldest, ...idle.filter(({ usedAt }) => now - usedAt > idleMillis)])
          actors.delete(actor.licenseId)
      })
      yield* Effect.forkScoped(Effect.repeat(tidy, Schedule.spaced("10 seconds")))

      const askWith: LicenseActors["Service"]["askWith"] = <Command, Reply, C extends Code, Begun, A>(
        licenseId: string,
        rule: Rule<Command, Reply, C>,
        command: Command,
        begin: (reply: Reply) => Begun,
        finish: (begun: Begun) => Effect.Effect<A>
      ) =>
        Effect.withFiber((fiber): Asked<A, C> => {
          const { requestId, clientAddress } = fiber.getRef(RequestContext)
          const origin: Origin = { ...fiber.getRef(CurrentActor), request_id: requestId, ip_address: clientAddress }
          const keeper = fiber.getRef(StoredResponse)
          const letter = { rule, command, origin, begin }
          if (keeper === undefined) {
            const begun: Asked<Begun, C> = Effect.callback((resume) =>
              post(licenseId, pendingCommand({ ...letter, resume }))
            )
            return Effect.flatMap(begun, finish)
          }
          const { committed } = keeper
          const keep = (begun: Begun) =>
            Effect.flatMap(finish(begun), (value) => Effect.map(keeper.rowOf(value), (row) => ({ value, row }))).pipe(
              Effect.provideContext(fiber.context)
            )
          return Effect.callback((resume) => post(licenseId, pendingCommand({ ...letter, resume, keep, committed })))
        })

      return LicenseActors.of({
        post,
        ask: (licenseId, rule, command) => askWith(licenseId, rule, command, identity, Effect.succeed),
        askWith,
        load: Effect.sync(() => ({
          actors: actors.size,
          waiting: Array.from(actors.values()).reduce((sum, { mailbox }) => sum + mailbox.length, 0)
        }))
      })
    })
  )
}
