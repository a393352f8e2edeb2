/** The worker that attaches partitions of event_log and usage_ledger in advance, and detaches old ones. */
import { Clock, Context, Effect, Layer } from "effect"
import { dayMillis } from "../../contract/api/Timestamp.ts"
import { Settings } from "../../platform/config/Config.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { endEarly } from "./EarlyEnd.ts"
import { copyEventIds } from "./EventIdCopy.ts"
import { extend } from "./OpenPartition.ts"
import { openLimits, type Parent, parents } from "./PartitionEnd.ts"
import { detachOld, dropDetached } from "./PartitionRetention.ts"
import { type PartitionSession, withPartitionSession } from "./PartitionSession.ts"
import { type PlanRow, planOf, planQuery, recentQuery, retentionDaysOf } from "./RetentionPlan.ts"

/** Numbers in a partition. Each list opens all partitions, so these are few. 2^26 ledger rows take 33 GB. */
const rowsMax = 67_108_864
const rowsMin = 4_096
const limits = { rowsMax, rowsMin, ...openLimits }
/** With a retention, the number of partitions in it. */
const partitionsInRetention = 8
export class Partitions extends Context.Service<Partitions, { readonly pass: Effect.Effect<void, unknown> }>()(
  "licensing/ledger/partitions/Partitions"
) {
  static readonly layer = Partitions.layerWith({})

  static layerWith(given: Partial<typeof limits>) {
    const { rowsMax, rowsMin, ...open } = { ...limits, ...given }
    return Layer.effect(
      Partitions,
      Effect.gen(function* () {
        const settings = yield* Settings
        const postgres = yield* Postgres
        const daysOf = (parent: Parent) => retentionDaysOf(settings, parent)
        let isPlanLogged = false

        const pass = withPartitionSession(
          Effect.fnUntraced(function* (session) {
            for (const parent of parents) {
              const numbers = yield* recentNumbers(session, parent, daysOf(parent))
              const share = Math.ceil(numbers / partitionsInRetention)
              const size = Math.min(rowsMax, Math.max(rowsMin, share))
              yield* endEarly(session, parent, size, open)
              yield* extend(session, parent, size, open)
            }
            yield* recordFirstEvents(session)
            yield* copyEventIds(session)
            for (const parent of parents) yield* detachOld(session, parent, daysOf(parent), settings.clockOffsetSeconds)
            if (settings.retentionDrop) yield* dropDetached(session)
            if (isPlanLogged) return
            isPlanLogged = true
            for (const parent of parents) yield* logPlan(session, parent, daysOf(parent))
          })
        ).pipe(Effect.asVoid, Effect.provideService(Postgres, postgres), Effect.withSpan("Partitions.pass"))
        return Partitions.of({ pass })
      })
    )
  }
}

/** Logs at the start of a node what the retention will remove. */
const logPlan = Effect.fnUntraced(function* ({ values }: PartitionSession, parent: Parent, days: number) {
  if (days === 0) return
  const now = yield* Clock.currentTimeMillis
  const [row] = yield* values(`SELECT to_jsonb(plan) FROM (${planQuery(parent)}) AS plan`, [
    instant(now - days * dayMillis)
  ])
  const { isLate, message } = planOf(parent, row?.[0] as PlanRow, days, now)
  yield* (isLate ? Effect.logWarning : Effect.logInfo)(`Retention: ${message}.`)
})

/** The count of new rows of a table within its retention; infinity without a retention. */
const recentNumbers = Effect.fnUntraced(function* ({ values }: PartitionSession, parent: Parent, days: number) {
  if (days === 0) return Number.POSITIVE_INFINITY
  const since = [instant((yield* Clock.currentTimeMillis) - days * dayMillis)]
  const [row] = yield* values(recentQuery(parent), since)
  return Number(row?.[0] ?? 0)
})

/** Records the first event of each ledger partition. Events and ledger rows are both numbered in the order of commits. */
const recordFirstEvents = Effect.fnUntraced(function* ({ values }: PartitionSession) {
  const rows = yield* values(`
    SELECT name FROM sequence_partitions, event_sequence
    WHERE parent = 'usage_ledger' AND first_event IS NULL AND first_sequence <= ledger_last`)
  for (const [name] of rows) {
    yield* values(`
      UPDATE sequence_partitions SET first_event =
        (SELECT event_sequence FROM ${name} WHERE event_sequence IS NOT NULL ORDER BY event_sequence LIMIT 1)
      WHERE name = '${name}'`)
  }
})
