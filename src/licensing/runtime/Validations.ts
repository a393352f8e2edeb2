/**
 * Counts validations per license and hour. Validations are cheap and frequent, so they are counted in memory, and a
 * worker adds the counts to the database every few seconds. A killed node loses the counts since the last write.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { hourMillis } from "../../contract/api/Timestamp.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { validationsUncounted } from "../../platform/telemetry/Metrics.ts"
import { makeBufferedWriter } from "../../platform/workers/BufferedWriter.ts"

/** Counters in memory, one per license and hour: about 20 MB, reached only while the database is unreachable. */
const countersMax = 200_000
/** Rows per transaction. */
const batchMax = 5_000

interface Counter {
  readonly license_id: string
  readonly hour: number
  validations: number
  refused: number
}

export class Validations extends Context.Service<
  Validations,
  {
    /** A plain function, because it runs for each validation. */
    count(licenseId: string, outcome: "validations" | "refused"): void
    readonly pass: Effect.Effect<void, unknown>
  }
>()("licensing/licensing/runtime/Validations") {
  static readonly layer = Layer.effect(
    Validations,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const clock = yield* Clock.Clock
      const metrics = yield* Effect.context<never>()
      // The current hour's counters by license, and the counters to write.
      let hour = 0
      let current = new Map<string, Counter>()
      const pending: Array<Counter> = []

      const begin = (license_id: string): Counter | undefined => {
        if (current.size + pending.length >= countersMax) {
          validationsUncounted.updateUnsafe(1, metrics)
          return undefined
        }
        const counter = { license_id, hour, validations: 0, refused: 0 }
        current.set(license_id, counter)
        return counter
      }

      const close = () => {
        for (const counter of current.values()) pending.push(counter)
        current = new Map()
      }

      const count = (licenseId: string, outcome: "validations" | "refused"): void => {
        const now = clock.currentTimeMillisUnsafe()
        if (now - hour >= hourMillis || now < hour) {
          close()
          hour = now - (now % hourMillis)
        }
        const counter = current.get(licenseId) ?? begin(licenseId)
        if (counter !== undefined) counter[outcome]++
      }

      const pass = yield* makeBufferedWriter({
        name: "validations",
        take: (first) => {
          if (first) close()
          return pending.length === 0 ? undefined : mergeAndSort(pending.splice(0, batchMax))
        },
        write: (batch) => add(sql, batch)
      })

      return Validations.of({ count, pass })
    })
  )
}

/** All nodes lock rows in the same order, so that they do not deadlock. A statement contains each row once. */
const mergeAndSort = (counters: ReadonlyArray<Counter>): ReadonlyArray<Counter> => {
  const merged = new Map<string, Counter>()
  for (const counter of counters) {
    const key = `${counter.license_id} ${counter.hour}`
    const existing = merged.get(key)
    if (existing === undefined) merged.set(key, counter)
    else {
      existing.validations += counter.validations
      existing.refused += counter.refused
    }
  }
  return [...merged].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, counter]) => counter)
}

const add = (sql: SqlClient.SqlClient, batch: ReadonlyArray<Counter>) =>
  Effect.asVoid(sql`
    INSERT INTO license_validations (license_id, hour, validations, refused)
    SELECT license_id, hour, validations, refused FROM unnest(
      ${columns.text(batch.map(({ license_id }) => license_id))}, ${columns.timestamptz(batch.map(({ hour }) => hour))},
      ${columns.int8(batch.map(({ validations }) => validations))}, ${columns.int8(batch.map(({ refused }) => refused))}
    ) WITH ORDINALITY AS counted (license_id, hour, validations, refused, ordinal) ORDER BY ordinal
    ON CONFLICT (license_id, hour) DO UPDATE
      SET validations = license_validations.validations + excluded.validations,
        refused = license_validations.refused + excluded.refused`)
