/** Runs the batches of actors: one at a time for each actor, with all pending commands of its mailbox. */
import { Clock, Effect, Exit, type Fiber, FiberSet, Result } from "effect"
import { makeCommandBatches } from "./CommandBatch.ts"
import { type CachedLicense, dropOutdated } from "./DecidedBatch.ts"
import { batchLengthOf, type CommandResult, inFirstSpan, type PendingCommand } from "./PendingCommand.ts"

export interface Actor extends CachedLicense {
  readonly mailbox: Array<PendingCommand>
  running: boolean
  /** The commands of the running batch, and its fiber if it has one. */
  batch: ReadonlyArray<PendingCommand>
  fiber: Fiber.Fiber<void> | undefined
  usedAt: number
}

export const noCommands: ReadonlyArray<PendingCommand> = []

/** Returns a function that runs batches of an actor, from the end of the turn until its mailbox is empty. */
export const makeActorBatches = Effect.gen(function* () {
  const batches = yield* makeCommandBatches
  const fork = yield* FiberSet.makeRuntime<never>()
  const clock = yield* Clock.Clock

  const deliver = (commands: ReadonlyArray<PendingCommand>, exit: Exit.Exit<ReadonlyArray<CommandResult>>): void => {
    for (const [index, command] of commands.entries()) {
      if (command.givenUp !== true) command.resume(Exit.isSuccess(exit) ? exit.value[index]! : exit)
    }
  }

  /** Finishes a batch and starts the next one. A failure is the result of all commands, and clears the cached state. */
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
    // The next batch starts before the results are delivered, so that the database is not idle meanwhile.
    start(actor)
    fork(
      Effect.andThen(
        Effect.yieldNow,
        Effect.sync(() => deliver(commands, exit))
      )
    )
  }

  /** Runs a batch that needs look-ups or another decision. */
  const runBatch = (actor: Actor, commands: ReadonlyArray<PendingCommand>, attempts: number): void => {
    const run = Effect.exit(Effect.interruptible(inFirstSpan(commands, batches.run(actor, commands, attempts))))
    actor.fiber = fork(Effect.uninterruptible(Effect.map(run, (exit) => finishBatch(actor, commands, exit))))
  }

  const start = (actor: Actor): void => {
    const commands = actor.mailbox.splice(0, batchLengthOf(actor.mailbox))
    actor.batch = commands
    const started = batches.startFromMemory(actor, commands, (exit) => {
      if (Exit.isFailure(exit)) finishBatch(actor, commands, Exit.failCause(exit.cause))
      else if (exit.value !== "stale") finishBatch(actor, commands, Exit.succeed(exit.value))
      else {
        dropOutdated(actor)
        runBatch(actor, commands, 1)
      }
    })
    if (Result.isFailure(started)) finishBatch(actor, commands, Exit.die(started.failure))
    else if (!started.success) runBatch(actor, commands, 0)
  }

  let scheduled: Array<Actor> = []
  /** All commands posted in the same turn share the batch. */
  const startScheduled = Effect.andThen(
    Effect.yieldNow,
    Effect.sync(() => {
      const actors = scheduled
      scheduled = []
      for (const actor of actors) start(actor)
    })
  )

  return (actor: Actor): void => {
    actor.running = true
    scheduled.push(actor)
    if (scheduled.length === 1) fork(startScheduled)
  }
})
