/** Validations and consumptions at a steady rate, timed from their due instant, so that waiting is included. */
import { consumedFeature, type Management, type Seat } from "./Licenses.ts"
import { quantile, rounded } from "./Turns.ts"

const operations = ["validate", "consume"] as const
type Operation = (typeof operations)[number]

export interface Load {
  readonly latencies: Record<Operation, Array<number>>
  failed: number
}

let used = 0

const request = (management: Management, seats: ReadonlyArray<Seat>, operation: Operation) => {
  const seat = seats[++used % seats.length]!
  const { fingerprint } = seat
  const usage = operation === "consume" ? { feature_code: consumedFeature, event_id: `event-${used}` } : undefined
  return management.runtime(`/license/${operation}`, seat, { fingerprint, ...usage })
}

/** Sends at the rate until it is stopped, without waiting for responses. */
export const steadily = async (
  management: Management,
  seats: ReadonlyArray<Seat>,
  rate: number,
  isOver: () => boolean
): Promise<Load> => {
  const load: Load = { latencies: { validate: [], consume: [] }, failed: 0 }
  const inFlight = new Set<Promise<void>>()
  const began = performance.now()
  for (let index = 0; !isOver(); index++) {
    const due = began + (index * 1000) / rate
    while (performance.now() < due) await new Promise((resolve) => setTimeout(resolve, 1))
    const operation = operations[index % operations.length]!
    const answered = request(management, seats, operation).then(
      () => void load.latencies[operation].push(performance.now() - due),
      () => void load.failed++
    )
    inFlight.add(answered)
    answered.finally(() => inFlight.delete(answered))
  }
  await Promise.all(inFlight)
  return load
}

/** The times of two loads as one. */
export const together = (one: Load, other: Load): Load => ({
  latencies: {
    validate: [...one.latencies.validate, ...other.latencies.validate],
    consume: [...one.latencies.consume, ...other.latencies.consume]
  },
  failed: one.failed + other.failed
})

/** The times of each operation before and during something else, and whether they stay below a ratio. */
export const comparisonOf = (before: Load, during: Load, ratioMax: number) =>
  operations.map((operation) => {
    const at = (load: Load, share: number) => quantile(load.latencies[operation], share)
    const ratios = [0.5, 0.99].map((share) => at(during, share) / at(before, share))
    return {
      operation,
      p50_before_ms: rounded(at(before, 0.5)),
      p50_during_ms: rounded(at(during, 0.5)),
      p99_before_ms: rounded(at(before, 0.99)),
      p99_during_ms: rounded(at(during, 0.99)),
      p50_ratio: rounded(ratios[0]!),
      p99_ratio: rounded(ratios[1]!),
      answered_during: during.latencies[operation].length,
      holds: ratios.every((ratio) => ratio <= ratioMax)
    }
  })
