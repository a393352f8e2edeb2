/** The actors in memory. */
import { type Actor, noCommands } from "./ActorBatches.ts"
import { giveUpLate, isLate, unknownOutcome } from "./PendingCommand.ts"

/** Actors in memory. The least recently used ones beyond this are evicted periodically. */
const actorsMax = 20_000
/** An actor unused for this long is evicted. */
const idleMillis = 300_000

export class ActorTable {
  private readonly actors = new Map<string, Actor>()

  find(licenseId: string): Actor | undefined {
    return this.actors.get(licenseId)
  }

  /** The license's actor; adds it if missing. */
  of(licenseId: string): Actor {
    const existing = this.actors.get(licenseId)
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
      changedElsewhereAt: Number.NEGATIVE_INFINITY
    }
    this.actors.set(licenseId, actor)
    return actor
  }

  evictIdle(now: number): void {
    const idle = Array.from(this.actors.values()).filter((actor) => !actor.running)
    const excess = this.actors.size - actorsMax
    const oldest = excess > 0 ? idle.toSorted((a, b) => a.usedAt - b.usedAt).slice(0, excess) : []
    for (const actor of [...oldest, ...idle.filter(({ usedAt }) => now - usedAt > idleMillis)])
      this.actors.delete(actor.licenseId)
  }

  /**
   * Answers commands at their deadline, and takes them out of the queues. If their changes are being committed, it waits for their
   * outcome for `outcomeMillis` more. Returns whether others wait.
   */
  giveUpLate(now: number, outcomeMillis: number): boolean {
    let waiting = false
    for (const actor of this.actors.values()) {
      if (!actor.running) continue
      waiting = true
      // Late commands can be anywhere in the mailbox: a returned command keeps its original deadline.
      const late = actor.mailbox.filter((command) => isLate(command, now))
      for (const command of late) actor.mailbox.splice(actor.mailbox.indexOf(command), 1)
      giveUpLate(late, now)
      if (actor.decided) {
        giveUpLate(actor.batch, now - outcomeMillis, unknownOutcome)
        continue
      }
      if (!actor.batch.some((command) => isLate(command, now))) continue
      giveUpLate(actor.batch, now)
      if (actor.batch.every(({ givenUp }) => givenUp)) actor.fiber?.interruptUnsafe()
    }
    return waiting
  }

  get load(): { readonly actors: number; readonly waiting: number } {
    const waiting = Array.from(this.actors.values()).reduce((sum, { mailbox }) => sum + mailbox.length, 0)
    return { actors: this.actors.size, waiting }
  }
}
