/**
 * One actor per license in use: a mailbox, the license's cached state, and at most one batch in progress. A batch takes
 * all pending commands, decides them and commits their changes together. Results are sent only after the commit.
 *
 * An actor is a map entry without a fiber or a timer. An unused actor is evicted, and the next command loads the
 * license again.
 */
import { Cause, Clock, Context, Effect, Exit, identity, Layer, Option, Schedule } from "effect"
import { CurrentActor } from "../../access/CurrentActor.ts"
import type { Code } from "../../contract/api/ErrorCode.ts"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { StoredResponse } from "../../contract/api/StoredResponse.ts"
import type { MailRow } from "../../ledger/mail/MailRows.ts"
import { Deadline, makeLateCheck, monotonicMillis, RequestTimeout } from "../../platform/postgres/driver/Deadline.ts"
import { sampledSpan, Traces } from "../../platform/telemetry/Traces.ts"
import type { Origin, Rule } from "../rules/LicenseCommand.ts"
import { makeActorBatches } from "./ActorBatches.ts"
import { ActorTable } from "./ActorTable.ts"
import { type PendingCommand, pendingCommand, type Signs, traceCommand, unknownOutcome } from "./PendingCommand.ts"

/** Pending commands of one license; further ones are answered with 503. */
const mailboxMax = 1024
type Router = (licenseId: string, command: PendingCommand) => boolean

type Asked<A, C extends Code> = Effect.Effect<A, Refusal<C> | Refusal<"NOT_FOUND" | "NOT_READY">>

export class LicenseActors extends Context.Service<
  LicenseActors,
  {
    /** Lets the license's actor decide a command, on behalf of the current user or key and request. */
    ask<Command, Reply, C extends Code>(
      licenseId: string,
      rule: Rule<Command, Reply, C>,
      command: NoInfer<Command>
    ): Asked<Reply, C>
    /**
     * The same, with work around the commit. `begin` starts work on the reply that runs during the commit. `finish`
     * converts its result into the handler's result: after the commit, or just before it if the response is stored with
     * the change. `mailsOf` gives mails that are queued with the change.
     */
    askWith<Command, Reply, C extends Code, Started, A>(
      licenseId: string,
      rule: Rule<Command, Reply, C>,
      command: NoInfer<Command>,
      begin: (reply: Reply) => Started,
      finish: (started: Started) => Effect.Effect<A>,
      signs?: Signs,
      mailsOf?: (started: Started) => Effect.Effect<ReadonlyArray<MailRow>>
    ): Asked<A, C>
    /** The same for callers outside a fiber: puts a command into the license's mailbox. */
    post(licenseId: string, command: PendingCommand): void
    /** Decides the command on this node, also if another node owns the license. */
    postHere(licenseId: string, command: PendingCommand): void
    /** `post` first calls this function with each command whose reply is signed. It returns whether it handles it. */
    setRouter(router: Router): void
    /** When a change of a cached license by another node, or outside of its actor, was last detected. */
    changedElsewhereAt(licenseId: string): number
    /** Actors in memory and commands waiting, for metrics. */
    readonly load: Effect.Effect<{ readonly actors: number; readonly waiting: number }>
  }
>()("licensing/licensing/engine/LicenseActors") {
  static readonly layer = Layer.effect(
    LicenseActors,
    Effect.gen(function* () {
      const startBatches = yield* makeActorBatches
      const clock = yield* Clock.Clock
      const timeoutMillis = yield* RequestTimeout
      const traces = yield* Traces
      const actors = new ActorTable()
      const startLateCheck = yield* makeLateCheck(() => actors.giveUpLate(monotonicMillis(clock), timeoutMillis))
      const evictIdle = Effect.sync(() => actors.evictIdle(clock.currentTimeMillisUnsafe()))
      yield* Effect.forkScoped(Effect.repeat(evictIdle, Schedule.spaced("10 seconds")))

      const postHere = (licenseId: string, command: PendingCommand): void => {
        const { span } = command
        if (span !== undefined && traces !== undefined) traceCommand(traces, licenseId, command, span)
        const actor = actors.of(licenseId)
        if (actor.mailbox.length >= mailboxMax) {
          command.resume(Exit.fail(refuse("NOT_READY", "Too many requests wait for this license: try again.")))
          return
        }
        command.deadline ??= monotonicMillis(clock) + timeoutMillis
        actor.mailbox.push(command)
        startLateCheck()
        if (!actor.running) startBatches(actor)
      }

      let router: Router | undefined
      const post = (licenseId: string, command: PendingCommand): void => {
        if (router === undefined || command.signs === undefined || !router(licenseId, command))
          postHere(licenseId, command)
      }

      const askWith = askThrough(post)
      return LicenseActors.of({
        post,
        postHere,
        setRouter: (given) => {
          router = given
        },
        changedElsewhereAt: (licenseId) => actors.find(licenseId)?.changedElsewhereAt ?? Number.NEGATIVE_INFINITY,
        ask: (licenseId, rule, command) => askWith(licenseId, rule, command, identity, Effect.succeed),
        askWith,
        load: Effect.sync(() => actors.load)
      })
    })
  )
}

/** Converts a fiber's request into a command for `post`, and waits for its result. */
const askThrough =
  (post: LicenseActors["Service"]["post"]): LicenseActors["Service"]["askWith"] =>
  <Command, Reply, C extends Code, Started, A>(
    licenseId: string,
    rule: Rule<Command, Reply, C>,
    command: Command,
    begin: (reply: Reply) => Started,
    finish: (started: Started) => Effect.Effect<A>,
    signs?: Signs,
    mailsOf?: (started: Started) => Effect.Effect<ReadonlyArray<MailRow>>
  ) =>
    Effect.withFiber((fiber): Asked<A, C> => {
      const { requestId, clientAddress } = fiber.getRef(RequestContext)
      const origin: Origin = { ...fiber.getRef(CurrentActor), request_id: requestId, ip_address: clientAddress }
      const recorder = fiber.getRef(StoredResponse)
      const release = decidedByActor(fiber.getRef(Deadline))
      const request = { rule, command, origin, begin, span: sampledSpan(fiber.context) }
      if (recorder === undefined && mailsOf === undefined) {
        const started: Asked<Started, C> = Effect.callback((resume) =>
          post(licenseId, pendingCommand({ ...request, resume, signs }))
        )
        return Effect.flatMap(release(started), finish)
      }
      const committed = recorder?.committed
      const storeResponse = (started: Started) =>
        Effect.gen(function* () {
          const value = yield* finish(started)
          const response = recorder && (yield* recorder.rowOf(value))
          return { value, stored: { response, mails: mailsOf && (yield* mailsOf(started)) } }
        }).pipe(Effect.provideContext(fiber.context))
      const answered: Asked<A, C> = Effect.callback((resume) =>
        post(licenseId, pendingCommand({ ...request, resume, storeResponse, committed }))
      )
      return release(answered)
    })

/**
 * The actor gives the command up, or reports its outcome. A refused request may be given up again afterwards, unless it is not known
 * whether it was carried out.
 */
const decidedByActor = (deadline: Deadline | undefined) => {
  if (deadline !== undefined) deadline.committing = true
  return <A, E, R>(asked: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    deadline === undefined
      ? asked
      : Effect.onError(asked, (cause) =>
          Effect.sync(() => {
            deadline.committing = isUnknown(cause)
          })
        )
}

const isUnknown = (cause: Cause.Cause<unknown>): boolean =>
  Option.getOrUndefined(Cause.findErrorOption(cause)) === unknownOutcome
