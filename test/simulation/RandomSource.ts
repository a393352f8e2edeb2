/** Where all chance of a simulation comes from: one seed, one sequence of throws. */

/** The sequence is Mulberry32's: small, and even enough to choose commands and faults by. */
export class RandomSource {
  private state: number

  constructor(seed: number) {
    this.state = seed >>> 0
    // Neighbouring seeds begin alike: the first throws are thrown away.
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

  /** A whole number between two, both among them. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  pick<A>(items: ReadonlyArray<A>): A {
    return items[Math.floor(this.next() * items.length)]!
  }

  /** One of the names, each as often as its weight says. */
  weighted<K extends string>(weights: { readonly [name in K]: number }): K {
    const entries = Object.entries(weights) as unknown as ReadonlyArray<readonly [K, number]>
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [name, weight] of entries) {
      left -= weight
      if (left < 0) return name
    }
    return entries.at(-1)![0]
  }

  /** One that does not even move this one: for what came later, so that all else of a seed stays what it was. */
  detached(): RandomSource {
    return new RandomSource(~this.state)
  }

  /** A dice of its own, so that what is thrown with it moves nothing else. */
  fork(): RandomSource {
    return new RandomSource(Math.floor(this.next() * 2 ** 32))
  }
}
