/**
 * Finds the due items among very many without scanning all of them each time. It keeps an instant before which no item
 * is due, and scans only after that instant. After a removal or change the instant may be too early; the next scan
 * corrects it.
 */
export class DueIndex<A> {
  /** No item comes due before this instant, except those already found. */
  private next = Number.POSITIVE_INFINITY
  /** Absent until an item is due: most licenses have none. */
  private found: Map<string, A> | undefined
  private readonly dueAt: (item: A) => number

  /** `dueAt` returns the instant at which an item is due; infinity = never. */
  constructor(dueAt: (item: A) => number) {
    this.dueAt = dueAt
  }

  put(key: string, item: A): void {
    this.found?.delete(key)
    this.next = Math.min(this.next, this.dueAt(item))
  }

  drop(key: string): void {
    this.found?.delete(key)
  }

  /** The items that are due at an instant, out of all items. */
  at(now: number, all: Iterable<readonly [string, A]>): ReadonlyArray<A> {
    if (now >= this.next) this.scan(now, all)
    return this.found === undefined ? [] : Array.from(this.found.values()).filter((item) => this.dueAt(item) <= now)
  }

  private scan(now: number, all: Iterable<readonly [string, A]>): void {
    this.next = Number.POSITIVE_INFINITY
    for (const [key, item] of all) {
      const at = this.dueAt(item)
      if (at > now) this.next = Math.min(this.next, at)
      else {
        this.found ??= new Map()
        this.found.set(key, item)
      }
    }
  }
}
