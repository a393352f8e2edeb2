/**
 * Which of very many things have come due, without looking at all of them each time: no thing is looked at before the earliest
 * instant that any of them was ever due at. That instant may be out of date, then one look finds nothing and corrects it.
 */
export class DueIndex<A> {
  /** Nothing comes due before, beyond what was found already. */
  private next = Number.POSITIVE_INFINITY
  private readonly found = new Map<string, A>()
  private readonly dueAt: (item: A) => number

  /** `dueAt` gives the instant at which a thing is due; infinity = never. */
  constructor(dueAt: (item: A) => number) {
    this.dueAt = dueAt
  }

  /** Takes note of a thing that is new or has changed. */
  put(key: string, item: A): void {
    this.found.delete(key)
    this.next = Math.min(this.next, this.dueAt(item))
  }

  /** Takes note that a thing is gone. */
  drop(key: string): void {
    this.found.delete(key)
  }

  /** What is due at an instant, of all things that there are. */
  at(now: number, all: Iterable<readonly [string, A]>): ReadonlyArray<A> {
    if (now >= this.next) this.look(now, all)
    return this.found.size === 0 ? [] : Array.from(this.found.values()).filter((item) => this.dueAt(item) <= now)
  }

  private look(now: number, all: Iterable<readonly [string, A]>): void {
    this.next = Number.POSITIVE_INFINITY
    for (const [key, item] of all) {
      const at = this.dueAt(item)
      if (at <= now) this.found.set(key, item)
      else this.next = Math.min(this.next, at)
    }
  }
}
