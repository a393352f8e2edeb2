/** A clock with timers that a test moves. The service and the machine have one each: the machine's may be wrong. */

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/** What has to be awaited after each timer: a kit. */
export interface Awaited {
  idle(): Promise<void>
}

export interface Span {
  readonly days?: number
  readonly hours?: number
  readonly minutes?: number
  readonly seconds?: number
}

export class TestClock {
  #now: number
  readonly #timers = new Set<Timer>()
  /** How far the machine's clock is ahead of the right time; negative: behind. Set it to tamper with the clock. */
  machineOffsetMillis = 0
  /** Timers may run so late within `pass`. A kit looks at the clock each minute: with 600,000 a year takes a tenth of the time. */
  stepMillis = 0

  /** Begins at an instant, in milliseconds or as `2026-01-01T00:00:00Z`. */
  constructor(start: number | string) {
    this.#now = typeof start === "number" ? start : Date.parse(start)
    if (!Number.isFinite(this.#now)) throw new TypeError("TestClock: start is an instant, as 2026-01-01T00:00:00Z.")
  }

  /** The right time, which the service has. */
  get now(): number {
    return this.#now
  }

  /** The machine's time, which the kit reads. */
  get machineNow(): number {
    return this.#now + this.machineOffsetMillis
  }

  /** The kit's timers. A wrong clock does not make them run earlier. */
  after(millis: number, callback: () => void): () => void {
    const timer = { at: this.#now + millis, callback }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** Time passes; each timer that is due runs at its time, and what the kits do then is awaited. */
  async pass(span: Span, ...kits: ReadonlyArray<Awaited>): Promise<void> {
    const end = this.#now + millisOf(span)
    // A kit that was just started has no timer yet.
    for (const kit of kits) await kit.idle()
    for (let timer = this.#next(end); timer !== undefined; timer = this.#next(end)) {
      this.#now = Math.min(end, Math.max(timer.at, this.#now + this.stepMillis))
      this.#run(timer)
      for (const kit of kits) await kit.idle()
    }
    this.#now = Math.max(this.#now, end)
  }

  /** Time passes within a request, which takes so long. */
  advance(millis: number): void {
    const end = this.#now + millis
    for (let timer = this.#next(end); timer !== undefined; timer = this.#next(end)) this.#run(timer)
    this.#now = end
  }

  /** Time passes, and no timer runs: the machine sleeps. */
  sleep(span: Span): void {
    this.#now += millisOf(span)
  }

  #next(end: number): Timer | undefined {
    let first: Timer | undefined
    for (const timer of this.#timers)
      if (timer.at <= end && !(first !== undefined && first.at <= timer.at)) first = timer
    return first
  }

  #run(timer: Timer): void {
    this.#timers.delete(timer)
    this.#now = Math.max(this.#now, timer.at)
    timer.callback()
  }
}

const millisOf = ({ days = 0, hours = 0, minutes = 0, seconds = 0 }: Span): number =>
  (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
