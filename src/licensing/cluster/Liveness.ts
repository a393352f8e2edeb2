/** Whether an owner is late: counts checks in a row that hear nothing of it, or of no decision. */

/**
 * Checks in a row, while commands wait, that hear nothing of the owner. Each of them asks it for a sign of life, so a frozen one or
 * a broken network is found within 250 ms. An owner that is heard of anyway is not asked. Checks are counted instead of time, because
 * this node itself may have little time: it reads between them.
 */
const silentChecksMax = 5
/**
 * Checks in a row that hear of no decision: the owner runs, but cannot reach the database, or has too much to do. If it decides
 * others, or waits for a lock, then a command that waits is held up by its license, and the owner answers it.
 */
const undecidedChecksMax = 20

export class Liveness {
  private silentChecks = 0
  /** Whether the owner was heard of since the last check. */
  private isHeard = false
  private undecidedChecks = 0

  /** Begins a row of checks. */
  begin(): void {
    this.silentChecks = 0
    this.isHeard = false
    this.undecidedChecks = 0
  }

  /** The owner sent something. */
  heard(): void {
    this.isHeard = true
  }

  /** The owner decided a command, or waits for a lock, which another node would wait for as well. */
  reachedDatabase(): void {
    this.undecidedChecks = 0
  }

  /** Counts a check. Returns whether the owner is late. */
  check(): boolean {
    this.silentChecks = this.isHeard ? 0 : this.silentChecks + 1
    this.isHeard = false
    return this.silentChecks >= silentChecksMax || ++this.undecidedChecks >= undecidedChecksMax
  }

  /** Whether the last check heard nothing. */
  get isSilent(): boolean {
    return this.silentChecks > 0
  }
}
