/** Reports the health of mail from the waiting rows, which are at most a day's, and the counts per ten minutes. */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Count } from "../../contract/api/Int64.ts"
import { dayMillis, Timestamp } from "../../contract/api/Timestamp.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { decodeRows } from "../../platform/postgres/queries/Sql.ts"
import { Mail } from "./Mail.ts"
import type { MailHealth } from "./MailHealth.ts"

/** The ages of the oldest pending mail for the statuses degraded and failing. */
const degradedAgeMillis = 300_000
const failingAgeMillis = 3_600_000

const decodeStatus = decodeRows(
  Schema.Struct({
    pending: Count,
    retrying: Count,
    sent_24h: Count,
    failed_24h: Count,
    given_up_24h: Count,
    oldest_pending_at: Schema.optionalKey(Timestamp),
    last_success_at: Schema.optionalKey(Timestamp),
    last_failure_at: Schema.optionalKey(Timestamp),
    last_failure_reason: Schema.optionalKey(Schema.String)
  })
)

export class MailStatus extends Context.Service<MailStatus, { readonly report: Effect.Effect<MailHealth> }>()(
  "licensing/ledger/mail/MailStatus"
) {
  static readonly layer = Layer.effect(
    MailStatus,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { isOn } = yield* Mail

      const read = (now: number) =>
        decodeStatus(sql`
          SELECT waiting.*, past.*, last.* FROM (
            SELECT count(*) AS pending, count(*) FILTER (WHERE attempts > 0) AS retrying, min(created_at) AS oldest_pending_at
            FROM mails
          ) AS waiting, (
            SELECT coalesce(sum(sent), 0)::bigint AS sent_24h, coalesce(sum(failed), 0)::bigint AS failed_24h,
              coalesce(sum(given_up), 0)::bigint AS given_up_24h
            FROM mail_counts WHERE period > ${instant(now - dayMillis)}
          ) AS past, (
            SELECT max(last_success_at) AS last_success_at, max(last_failure_at) AS last_failure_at,
              (array_agg(last_failure ORDER BY last_failure_at DESC NULLS LAST))[1] AS last_failure_reason
            FROM mail_counts
          ) AS last`)

      const report = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const [row] = yield* read(now)
        const { failed_24h, given_up_24h, pending, retrying, sent_24h, ...times } = row!
        const { oldest_pending_at } = times
        const attempts = sent_24h + failed_24h
        const success_rate_24h = attempts === 0 ? undefined : sent_24h / attempts
        const ageMillis = Math.max(0, now - (oldest_pending_at ?? now))
        const failing = (success_rate_24h ?? 1) < 0.5 || ageMillis >= failingAgeMillis
        const degraded = retrying + given_up_24h > 0 || ageMillis >= degradedAgeMillis
        return {
          status: !isOn ? "off" : failing ? "failing" : degraded ? "degraded" : "healthy",
          mails: { pending, retrying, sent_24h, failed_24h, given_up_24h },
          ...times,
          ...(oldest_pending_at && { oldest_pending_age_seconds: Math.floor(ageMillis / 1_000) }),
          ...(success_rate_24h !== undefined && { success_rate_24h })
        } satisfies MailHealth as MailHealth
      })
      return MailStatus.of({ report: Effect.orDie(Effect.withSpan(report, "MailStatus.report")) })
    })
  )
}
