/** The only source of randomness in a simulation: one seed gives one sequence of numbers. */

/** Mulberry32: small, and uniform enough to choose commands and faults. */
export class RandomSource {
  private state: number

  constructor(seed: number) {
    this.state = seed >>> 0
    // Sequences of neighbouring seeds start with similar numbers, so the first ones are discarded.
    for (let thrown = 0; thrown < 8; thrown++) this.next()
  }

  /** At least 0, below 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let mixed = this.state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** An integer from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  pick<A>(items: ReadonlyArray<A>): A {
    return items[Math.floor(this.next() * items.length)]!
  }

  /** One of the names, with a probability in proportion to its weight. */
  weighted<K extends string>(weights: { readonly [name in K]: number }): K {
    const entries = Object.entries(weights) as unknown as ReadonlyArray<readonly [K, number]>
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [name, weight] of entries) {
      left -= weight
      if (left < 0) return name
    }
    return entries.at(-1)![0]
  }

  /** An independent source that does not advance this one: for later additions, so that existing seeds stay the same. */
  detached(): RandomSource {
    return new RandomSource(~this.state)
  }

  /** An independent source, seeded by the next number of this one. */
  fork(): RandomSource {
    return new RandomSource(Math.floor(this.next() * 2 ** 32))
  }
}
