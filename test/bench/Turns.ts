/**
 * The same request asked of several sides in short turns, so that whatever else the machine does falls on all of them: ratios
 * hold where milliseconds do not.
 */

/** What was answered of some requests: milliseconds of those that succeeded, and how many did not. */
export interface Answered {
  readonly latencies: ReadonlyArray<number>
  readonly failed: number
}

export interface Asked {
  readonly name: string
  /** The least time from one turn of a side to its next. */
  readonly restMillis?: number
  run(requests: number): Promise<Answered>
}

/** Requests of one turn: few, for the reason above. */
export const turn = 25

/** Sends so many requests to each side, after a tenth as many that are not counted, and gives what each has answered. */
export const inTurns = async (
  sides: ReadonlyArray<Omit<Asked, "name">>,
  requests: number
): Promise<ReadonlyArray<Answered>> => {
  const latencies = sides.map((): Array<number> => [])
  const failed = sides.map(() => 0)
  const turns = Math.ceil(requests / turn)
  // Connections and caches are warmed up first.
  for (let number = -Math.ceil(turns / 10); number < turns; number++) {
    const rest = new Promise((resolve) =>
      setTimeout(resolve, Math.max(0, ...sides.map(({ restMillis = 0 }) => restMillis)))
    )
    // Whoever comes first after a rest finds other things in the processor's caches than whoever comes last.
    const order = Array.from(sides.entries())
    for (const [index, { run }] of number % 2 === 0 ? order : order.toReversed()) {
      const result = await run(turn)
      failed[index]! += result.failed
      if (number >= 0) latencies[index]!.push(...result.latencies)
    }
    await rest
  }
  return sides.map((_, index) => ({ latencies: latencies[index]!, failed: failed[index]! }))
}

/** The value that this share of all values does not exceed. */
export const quantile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const rounded = (value: number, digits = 2): number => Number(value.toFixed(digits))
