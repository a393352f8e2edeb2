/**
 * One actor per license in use: a mailbox, the license's cached state, and at most one batch in progress. A batch takes
 * all waiting commands, decides them and commits their changes together; results leave only after the commit.
 *
 * An actor costs a map entry: no fiber, no timer. An actor that was not used for a while is evicted; its next command
 * loads the license again.
 */
import { Clock, Context, Effect, Exit, type Fiber, FiberSet, identity, Layer, Result, Schedule } from "effect"
import type { Code } from "../../api/ErrorCode.ts"
import { type Refusal, refuse } from "../../api/Failure.ts"
import { RequestContext } from "../../api/RequestContext.ts"
import { StoredResponse } from "../../api/StoredResponse.ts"
import { CurrentActor } from "../../auth/CurrentActor.ts"
import { Deadline, makeLateCheck, RequestTimeout } from "../../postgres/Deadline.ts"
import { sampledSpan, Traces } from "../../telemetry/Traces.ts"
import type { Origin, Rule } from "../rules/LicenseCommand.ts"
import { type CachedLicense, dropOutdated, makeCommandBatches } from "./CommandBatch.ts"
import {
  batchLengthOf,
  type CommandResult,
  giveUpLate,
  inFirstSpan,
  isLate,
  type PendingCommand,
  pendingCommand,
  type Signs,
  traceCommand
} from "./PendingCommand.ts"

/** Commands that may wait for one license. Further ones are answered with 503; the queue never grows without limit. */
const mailboxMax = 1024
/** Actors in memory. The least recently used ones beyond this are evicted periodically. */
const actorsMax = 20_000
/** An actor unused for this long is evicted. */
const idleMillis = 300_000

interface Actor extends CachedLicense {
  readonly mailbox: Array<PendingCommand>
  running: boolean
  /** The commands of the running batch, and its fiber if it has one. */
  batch: ReadonlyArray<PendingCommand>
  fiber: Fiber.Fiber<void> | undefined
  usedAt: number
}

const noCommands: ReadonlyArray<PendingCommand> = []

type HandOver = (licenseId: string, command: PendingCommand) => boolean

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
     * The same, with work around the commit. `begin` starts work on the reply that can run during the commit. `finish` turns
     * its result into the handler's result: after the commit, or just before it if the response is stored with the change.
     */
    askWith<Command, Reply, C extends Code, Started, A>(
      licenseId: string,
      rule: Rule<Command, Reply, C>,
      command: NoInfer<Command>,
      begin: (reply: Reply) => Started,
      finish: (started: Started) => Effect.Effect<A>,
      signs?: Signs
    ): Asked<A, C>
    /** The same for callers outside a fiber: puts a command into the license's mailbox. */
    post(licenseId: string, command: PendingCommand): void
    /** Decides the command on this node, also if another node owns the license. */
    postHere(licenseId: string, command: PendingCommand): void
    /** From now on `post` offers the commands whose replies are signed to this function first; true: it takes care of the command. */
    handOverWith(handOver: HandOver): void
    /** When a license in memory was last found to have been changed by others than its actor, nearly always by another node. */
    overtakenAt(licenseId: string): number
    /** Actors in memory and commands waiting, for metrics. */
    readonly load: Effect.Effect<{ readonly actors: number; readonly waiting: number }>
  }
>()("licensing/licenses/engine/LicenseActors") {
  static readonly layer = Layer.effect(
    LicenseActors,
    Effect.gen(function* () {
      const batches = yield* makeCommandBatches
      const fork = yield* FiberSet.makeRuntime<never>()
      const clock = yield* Clock.Clock
      const timeoutMillis = yield* RequestTimeout
      const traces = yield* Traces
      const actors = new Map<string, Actor>()

      const deliver = (
        commands: ReadonlyArray<PendingCommand>,
        exit: Exit.Exit<ReadonlyArray<CommandResult>>
      ): void => {
        for (const [index, command] of commands.entries()) {
          if (command.givenUp !== true) command.resume(Exit.isSuccess(exit) ? exit.value[index]! : exit)
        }
      }

      /**
       * Finishes a batch and starts the next one. A failure is the result of every command in the batch, and clears the
       * cached state.
       */
      const finishBatch = (
        actor: Actor,
        commands: ReadonlyArray<PendingCommand>,
        exit: Exit.Exit<ReadonlyArray<CommandResult>>
      ): void => {
        if (Exit.isFailure(exit)) actor.state = undefined
        actor.decided = false
        actor.batch = noCommands
        actor.fiber = undefined
        if (actor.mailbox.length === 0) {
          actor.usedAt = clock.currentTimeMillisUnsafe()
          actor.running = false
          deliver(commands, exit)
          return
        }
        // Start the next batch before delivering this batch's results, so that the database does not wait for them.
        start(actor)
        fork(
          Effect.andThen(
            Effect.yieldNow,
            Effect.sync(() => deliver(commands, exit))
          )
        )
      }

      /** Runs a batch that needs look-ups or has to be decided again. */
      const runBatch = (actor: Actor, commands: ReadonlyArray<PendingCommand>, attempts: number): void => {
        const run = Effect.exit(Effect.interruptible(inFirstSpan(commands, batches.run(actor, commands, attempts))))
        actor.fiber = fork(Effect.uninterruptible(Effect.map(run, (exit) => finishBatch(actor, commands, exit))))
      }

      /** Starts a batch of all waiting commands. */
      const start = (actor: Actor): void => {
        const commands = actor.mailbox.splice(0, batchLengthOf(actor.mailbox))
        actor.batch = commands
        const started = batches.startFromMemory(actor, commands, (outcome) => {
          if (Exit.isFailure(outcome)) finishBatch(actor, commands, Exit.failCause(outcome.cause))
          else if (outcome.value !== "stale") finishBatch(actor, commands, Exit.succeed(outcome.value))
          else {
            dropOutdated(actor)
            runBatch(actor, commands, 1)
          }
        })
        if (Result.isFailure(started)) finishBatch(actor, commands, Exit.die(started.failure))
        else if (!started.success) runBatch(actor, commands, 0)
      }

      let scheduled: Array<Actor> = []
      /** Yields once to the scheduler, so that all commands posted in the same turn share the batch. */
      const startScheduled = Effect.andThen(
        Effect.yieldNow,
        Effect.sync(() => {
          const actors = scheduled
          scheduled = []
          for (const actor of actors) start(actor)
        })
      )

      const actorOf = (licenseId: string): Actor => {
        const existing = actors.get(licenseId)
        if (existing !== undefined) return existing
        const actor: Actor = {
          licenseId,
          mailbox: [],
          state: undefined,
          decided: false,
          running: false,
          batch: noCommands,
          fiber: undefined,
          usedAt: 0,
          outdatedRevision: undefined,
          overtakenAt: Number.NEGATIVE_INFINITY
        }
        actors.set(licenseId, actor)
        return actor
      }

      const startLateCheck = yield* makeLateCheck(() => giveUpLateCommands(actors, clock.currentTimeMillisUnsafe()))
      const postHere = (licenseId: string, command: PendingCommand): void => {
        const { span } = command
        if (span !== undefined && traces !== undefined) traceCommand(traces, licenseId, command, span)
        const actor = actorOf(licenseId)
        if (actor.mailbox.length >= mailboxMax) {
          command.resume(Exit.fail(refuse("NOT_READY", "Too many requests wait for this license: try again.")))
          return
        }
        command.deadline ??= clock.currentTimeMillisUnsafe() + timeoutMillis
        actor.mailbox.push(command)
        startLateCheck()
        if (actor.running) return
        actor.running = true
        scheduled.push(actor)
        if (scheduled.length === 1) fork(startScheduled)
      }

      let handOver: HandOver | undefined
      const post = (licenseId: string, command: PendingCommand): void => {
        if (handOver === undefined || command.signs === undefined || !handOver(licenseId, command))
          postHere(licenseId, command)
      }

      const evictIdle = Effect.sync(() => {
        const now = clock.currentTimeMillisUnsafe()
        const idle = Array.from(actors.values()).filter((actor) => !actor.running)
        const excess = actors.size - actorsMax
        const oldest = excess > 0 ? idle.toSorted((a, b) => a.usedAt - b.usedAt).slice(0, excess) : []
        for (const actor of [...oldest, ...idle.filter(({ usedAt }) => now - usedAt > idleMillis)])
          actors.delete(actor.licenseId)
      })
      yield* Effect.forkScoped(Effect.repeat(evictIdle, Schedule.spaced("10 seconds")))

      const askWith: LicenseActors["Service"]["askWith"] = <Command, Reply, C extends Code, Started, A>(
        licenseId: string,
        rule: Rule<Command, Reply, C>,
        command: Command,
        begin: (reply: Reply) => Started,
        finish: (started: Started) => Effect.Effect<A>,
        signs?: Signs
      ) =>
        Effect.withFiber((fiber): Asked<A, C> => {
          const { requestId, clientAddress } = fiber.getRef(RequestContext)
          const origin: Origin = { ...fiber.getRef(CurrentActor), request_id: requestId, ip_address: clientAddress }
          const recorder = fiber.getRef(StoredResponse)
          const release = decidedByActor(fiber.getRef(Deadline))
          const request = { rule, command, origin, begin, span: sampledSpan(fiber.context) }
          if (recorder === undefined) {
            const started: Asked<Started, C> = Effect.callback((resume) =>
              post(licenseId, pendingCommand({ ...request, resume, signs }))
            )
            return Effect.flatMap(release(started), finish)
          }
          const { committed } = recorder
          const storeResponse = (started: Started) =>
            Effect.flatMap(finish(started), (value) =>
              Effect.map(recorder.rowOf(value), (row) => ({ value, row }))
            ).pipe(Effect.provideContext(fiber.context))
          const answered: Asked<A, C> = Effect.callback((resume) =>
            post(licenseId, pendingCommand({ ...request, resume, storeResponse, committed }))
          )
          return release(answered)
        })

      return LicenseActors.of({
        post,
        postHere,
        handOverWith: (given) => {
          handOver = given
        },
        overtakenAt: (licenseId) => actors.get(licenseId)?.overtakenAt ?? Number.NEGATIVE_INFINITY,
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

/**
 * Answers commands at their deadline unless their changes are being committed, and takes them out of the queues. Returns whether
 * others wait.
 */
const giveUpLateCommands = (actors: ReadonlyMap<string, Actor>, now: number): boolean => {
  let waiting = false
  for (const actor of actors.values()) {
    if (!actor.running) continue
    waiting = true
    // Not only at the front: a command that another node gave back has its old deadline.
    const late = actor.mailbox.filter((command) => isLate(command, now))
    for (const command of late) actor.mailbox.splice(actor.mailbox.indexOf(command), 1)
    giveUpLate(late, now)
    if (actor.decided || !actor.batch.some((command) => isLate(command, now))) continue
    giveUpLate(actor.batch, now)
    if (actor.batch.every(({ givenUp }) => givenUp)) actor.fiber?.interruptUnsafe()
  }
  return waiting
}

/** The actor gives the command up, or reports its outcome; a refused request may be given up again afterwards. */
const decidedByActor = (deadline: Deadline | undefined) => {
  if (deadline !== undefined) deadline.committing = true
  return <A, E, R>(asked: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    deadline === undefined
      ? asked
      : Effect.onError(asked, () =>
          Effect.sync(() => {
            deadline.committing = false
          })
        )
}
