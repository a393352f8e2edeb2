/**
 * Records refused runtime calls for the feed. A refusal must stay cheap, so it is buffered in memory. A worker writes the
 * buffer once a second, or sooner when it fills up. Refusals beyond the buffer's limit are dropped and counted. A node that is
 * killed loses its buffer.
 *
 * Not recorded: calls without a valid license key (their license is unknown), calls over a rate limit (a flood must not fill
 * the disk), and refusals that an event records: the event is their activity.
 */
import { Context, Effect, Latch, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type Code, statuses } from "../../contract/api/ErrorCode.ts"
import type { RequestContext, RuntimeCall } from "../../contract/api/RequestContext.ts"
import { Validations } from "../../licensing/runtime/Validations.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { waitsForLog } from "../../platform/postgres/queries/Sql.ts"
import { refusalsDropped } from "../../platform/telemetry/Metrics.ts"
import { makeBufferedWriter } from "../../platform/workers/BufferedWriter.ts"
import { wheneverOpened } from "../../platform/workers/Workers.ts"
import { runtimeActions } from "./Action.ts"

/** About 10 MB. More refusals within a second are a fault or an attack. */
const bufferMax = 10_000
/** A buffer of this size starts a pass ahead of schedule. */
const bufferLarge = 2_000
/** A transaction blocks all other sequence numbers until its commit. */
const batchMax = 1_000

/** Texts from callers are recorded only if they have the form of a feature code. */
const featureCodePattern = /^[a-z0-9][a-z0-9._-]{0,63}$/

interface BufferedRefusal {
  readonly call: RuntimeCall
  readonly code: Code
  readonly request_id: string
  readonly ip_address: string | undefined
  readonly occurred_at: number
}

export class Refusals extends Context.Service<
  Refusals,
  {
    /** Buffers a refused request if it belongs in the feed. Runs for each refusal, so it is a plain function. */
    note(context: RequestContext, code: Code, now: number): void
    readonly pass: Effect.Effect<void, unknown>
    /** Runs the given pass each time the buffer is large. */
    passWhenLarge(pass: Effect.Effect<void>): Effect.Effect<never>
  }
>()("licensing/insight/activities/Refusals") {
  static readonly layer = Layer.effect(
    Refusals,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const validations = yield* Validations
      const metrics = yield* Effect.context<never>()
      const large = yield* Latch.make(false)
      const buffer: Array<BufferedRefusal> = []
      // The running pass writes no refusals that arrive later.
      let due = 0

      const note = (context: RequestContext, code: Code, now: number): void => {
        const { clientAddress, isRefusalRecorded, requestId, runtimeCall: call } = context
        const status = statuses[code]
        if (call === undefined || status === 401 || status >= 500 || code === "RATE_LIMITED") return
        if (call.operation === "validate") validations.count(call.licenseId, "refused")
        if (isRefusalRecorded === true) return
        if (buffer.length >= bufferMax) refusalsDropped.updateUnsafe(1, metrics)
        else buffer.push({ call, code, request_id: requestId, ip_address: clientAddress, occurred_at: now })
        if (buffer.length === bufferLarge) large.openUnsafe()
      }

      const pass = yield* makeBufferedWriter({
        name: "refusals",
        take: (first) => {
          if (first) due = buffer.length
          const batch = buffer.splice(0, Math.min(due, batchMax))
          due -= batch.length
          return batch.length === 0 ? undefined : batch
        },
        write: (batch) => Effect.flatMap(devicesOf(sql, batch), (devices) => insert(sql, batch, devices))
      })

      return Refusals.of({
        note,
        pass,
        passWhenLarge: (call) => wheneverOpened(large, call)
      })
    })
  )
}

const callsOf = (batch: ReadonlyArray<BufferedRefusal>) => batch.map(({ call }) => call)

/** Reads the devices of the calls before any lock is taken. */
const devicesOf = (sql: SqlClient.SqlClient, batch: ReadonlyArray<BufferedRefusal>) => {
  const calls = callsOf(batch)
  return Effect.map(
    sql<{ readonly device_id: string | null }>`
      SELECT coalesce(
        (SELECT d.id FROM devices d
          WHERE d.license_id = call.license_id AND d.binding_kind = call.kind AND d.binding_key = call.key),
        (SELECT e.device_id FROM leases e
          WHERE e.token_hash = decode(call.token_hash, 'hex') AND e.license_id = call.license_id)
      ) AS device_id
      FROM unnest(${columns.text(calls.map(({ licenseId }) => licenseId))},
        ${columns.text(calls.map(({ binding }) => binding?.kind ?? null))},
        ${columns.text(calls.map(({ binding }) => binding?.key ?? null))},
        ${columns.text(calls.map(({ leaseTokenHash }) => leaseTokenHash ?? null))}
      ) WITH ORDINALITY AS call (license_id, kind, key, token_hash, ordinal) ORDER BY ordinal`,
    (rows) => rows.map(({ device_id }) => device_id)
  )
}

/**
 * Numbers the refusals after the last event and the refusals before them; both counters are stable under the lock of the event
 * counter's row. The events' own counter does not change.
 */
const insert = (
  sql: SqlClient.SqlClient,
  batch: ReadonlyArray<BufferedRefusal>,
  devices: ReadonlyArray<string | null>
) => {
  const features = callsOf(batch).map(({ featureCode }) =>
    featureCode !== undefined && featureCodePattern.test(featureCode) ? featureCode : null
  )
  return Effect.asVoid(
    waitsForLog(sql`
    WITH counter AS (
      UPDATE event_sequence SET refusals_last = refusals_last + ${batch.length}
      RETURNING last, refusals_last, last + refusals_last - ${batch.length} AS base
    ), written AS (
      INSERT INTO refusals (activity_sequence, occurred_at, action, license_id, device_id, feature_code, code, status_code,
        request_id, ip_address)
      SELECT counter.base + ordinal, occurred_at, action, license_id, device_id, feature_code, code, status_code, request_id,
        ip_address
      FROM counter, unnest(
        ${columns.timestamptz(batch.map((row) => row.occurred_at))},
        ${columns.text(batch.map(({ call }) => runtimeActions[call.operation]!))},
        ${columns.text(batch.map(({ call }) => call.licenseId))}, ${columns.text(devices)}, ${columns.text(features)},
        ${columns.text(batch.map((row) => row.code))}, ${columns.int4(batch.map((row) => statuses[row.code]))},
        ${columns.text(batch.map((row) => row.request_id))}, ${columns.text(batch.map((row) => row.ip_address ?? null))}
      ) WITH ORDINALITY AS refusal (occurred_at, action, license_id, device_id, feature_code, code, status_code, request_id,
        ip_address, ordinal)
    )
    INSERT INTO activity_offsets (after_sequence, refusals_total, activity_sequence)
    SELECT last, refusals_last, last + refusals_last FROM counter
    ON CONFLICT (after_sequence) DO UPDATE
      SET refusals_total = excluded.refusals_total, activity_sequence = excluded.activity_sequence`)
  )
}
