/**
 * A transaction that lost a conflict retries after a pause that the scheduler does not see, so the scheduler must wait for it. One fiber
 * makes all attempts in turn, so the fiber identifies the attempt, even if its node runs other tasks.
 */
import { Effect, type Fiber } from "effect"
import { SqlError } from "effect/sql"

/** Errors after which a transaction retries, and its attempts in all. */
const triedAgain: ReadonlyArray<string> = ["SerializationError", "DeadlockError"]
const attemptsMax = 6

export class Attempts {
  private readonly made = new WeakMap<object, number>()
  /** Fibers whose next attempt is pending, with their nodes. */
  private readonly awaited = new Map<object, string>()

  /** A transaction that its fiber retries. */
  readonly counted = <A, E, R>(node: string, transaction: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      const attempt = (this.made.get(fiber) ?? 0) + 1
      this.awaited.delete(fiber)
      this.made.delete(fiber)
      return Effect.tapError(transaction, (error) => Effect.sync(() => this.note(fiber, node, attempt, error)))
    })

  private note(fiber: Fiber.Fiber<unknown, unknown>, node: string, attempt: number, error: unknown): void {
    const isTriedAgain = SqlError.isSqlError(error) && triedAgain.includes(error.reason._tag) && attempt < attemptsMax
    if (!isTriedAgain) return
    this.made.set(fiber, attempt)
    this.awaited.set(fiber, node)
  }

  /** A stopped node makes no further attempt. */
  forget(node: string): void {
    for (const [fiber, name] of this.awaited) if (name === node) this.awaited.delete(fiber)
  }

  /** The nodes with a pending attempt. */
  get returning(): ReadonlyArray<string> {
    return Array.from(this.awaited.values())
  }
}
