/**
 * Sends the same requests to several sides in short alternating turns, so that other load of the machine affects all of
 * them: ratios stay comparable when milliseconds do not.
 */

/** The results of some requests: milliseconds of those that succeeded, and the number of failures. */
export interface TurnResult {
  readonly latencies: ReadonlyArray<number>
  readonly failed: number
}

export interface TurnSide {
  readonly name: string
  /** The minimum time between two turns of a side. */
  readonly restMillis?: number
  run(requests: number): Promise<TurnResult>
}

/** Requests of one turn: few, for the reason above. */
export const requestsPerTurn = 25

/**
 * Sends the given number of requests to each side, after a tenth as many unmeasured ones, and returns the results of
 * each.
 */
export const inTurns = async (
  sides: ReadonlyArray<Omit<TurnSide, "name">>,
  requests: number
): Promise<ReadonlyArray<TurnResult>> => {
  const latencies = sides.map((): Array<number> => [])
  const failed = sides.map(() => 0)
  const turns = Math.ceil(requests / requestsPerTurn)
  // Connections and caches are warmed up first.
  for (let number = -Math.ceil(turns / 10); number < turns; number++) {
    const rest = new Promise((resolve) =>
      setTimeout(resolve, Math.max(0, ...sides.map(({ restMillis = 0 }) => restMillis)))
    )
    // The first side after a pause finds other data in the processor's caches than the last, so the order changes.
    const order = Array.from(sides.entries())
    for (const [index, { run }] of number % 2 === 0 ? order : order.toReversed()) {
      const result = await run(requestsPerTurn)
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
