/** The worker that attaches partitions of event_log and usage_ledger ahead of time, and detaches old ones. */
import { Clock, Context, Effect, Layer } from "effect"
import { Settings } from "../../config/Config.ts"
import { instant } from "../../postgres/Parameters.ts"
import { Postgres } from "../../postgres/Postgres.ts"
import { copyEventIds } from "./EventIdCopy.ts"
import { extend, openLimits, type Parent } from "./OpenPartition.ts"
import { type PartitionSession, withPartitionSession } from "./PartitionSession.ts"
import { detachOld, dropDetached } from "./Retention.ts"

/** Numbers in a partition: fewer make many partitions, which each list has to open. 2^26 ledger rows take 33 GB. */
const rowsMax = 67_108_864
const rowsMin = 65_536
const limits = { rowsMax, rowsMin, ...openLimits }
/** With a retention a partition lasts for this share of it. */
const partitionsInRetention = 8
const dayMillis = 86_400_000

const parents: ReadonlyArray<Parent> = [
  { name: "event_log", last: "last" },
  { name: "usage_ledger", last: "ledger_last" }
]

export class Partitions extends Context.Service<Partitions, { readonly pass: Effect.Effect<void, unknown> }>()(
  "licensing/events/partitions/Partitions"
) {
  static readonly layer = Partitions.layerWith({})

  /** With other sizes than the defaults. */
  static layerWith(given: Partial<typeof limits>) {
    const { rowsMax, rowsMin, ...open } = { ...limits, ...given }
    return Layer.effect(
      Partitions,
      Effect.gen(function* () {
        const { eventRetentionDays, ledgerRetentionDays, retentionDrop } = yield* Settings
        const postgres = yield* Postgres
        const daysOf = ({ name }: Parent) => (name === "event_log" ? eventRetentionDays : ledgerRetentionDays)

        const pass = withPartitionSession(
          Effect.fnUntraced(function* (session) {
            for (const parent of parents) {
              const numbers = yield* recentNumbers(session, parent, daysOf(parent))
              const share = Math.ceil(numbers / partitionsInRetention)
              yield* extend(session, parent, Math.min(rowsMax, Math.max(rowsMin, share)), open)
            }
            yield* recordFirstEvents(session)
            yield* copyEventIds(session)
            for (const parent of parents) yield* detachOld(session, parent, daysOf(parent))
            if (retentionDrop) yield* dropDetached(session)
          })
        ).pipe(Effect.asVoid, Effect.provideService(Postgres, postgres), Effect.withSpan("Partitions.pass"))
        return Partitions.of({ pass })
      })
    )
  }
}

/** The numbers that a table was given in the last days; without a retention there is no such period. */
const recentNumbers = Effect.fnUntraced(function* ({ values }: PartitionSession, { name }: Parent, days: number) {
  if (days === 0) return Number.POSITIVE_INFINITY
  const since = [instant((yield* Clock.currentTimeMillis) - days * dayMillis)]
  const [row] = yield* values(
    name === "event_log"
      ? `SELECT last - coalesce((SELECT max(last_sequence) FROM event_spans WHERE last_at < $1::timestamptz), 0)
          FROM event_sequence`
      : "SELECT coalesce(sum(ledger_rows), 0)::bigint FROM usage_rollup_days WHERE day >= $1::timestamptz",
    since
  )
  return Number(row?.[0] ?? 0)
})

/**
 * Records from which event on a partition of the ledger has rows: the first one that is visible, because numbers of events and
 * rows rise together, in the order of commits.
 */
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
