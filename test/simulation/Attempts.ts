/**
 * Who has lost against others tries again after a pause that the gate does not see, and has to be waited for. All attempts are made by
 * one fiber, each after the one before, so the fiber tells which attempt a transaction is, whatever else its node has under way.
 */
import { Effect, type Fiber } from "effect"
import { SqlError } from "effect/sql"

/** Errors after which a transaction is tried again, and how often it is tried in all. */
const triedAgain: ReadonlyArray<string> = ["SerializationError", "DeadlockError"]
const attemptsMax = 6

export class Attempts {
  private readonly made = new WeakMap<object, number>()
  /** Whose next attempt is on its way, each with its node. */
  private readonly awaited = new Map<object, string>()

  /** A transaction that is tried again by the fiber that runs it. */
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

  /** A node that is stopped does not come again. */
  forget(node: string): void {
    for (const [fiber, name] of this.awaited) if (name === node) this.awaited.delete(fiber)
  }

  /** The nodes of which an attempt is on its way. */
  get returning(): ReadonlyArray<string> {
    return Array.from(this.awaited.values())
  }
}
