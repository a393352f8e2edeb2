/**
 * Runtime calls that were refused, on their way into the feed. A refusal must stay as cheap as it is: it is noted in memory, and a
 * worker writes what has gathered, once a second or sooner where much has. What does not fit is dropped and counted; a node that is
 * killed loses what it has noted since the last pass.
 *
 * Nothing is noted of calls without a valid license key (there is no license to tell of), of those over a rate limit (a flood must
 * not fill the disk), and of refused activations at a limit (their event tells).
 */
import { Context, Effect, Latch, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type Code, statuses } from "../api/ErrorCode.ts"
import type { RequestContext, RuntimeCall } from "../api/RequestContext.ts"
import { columns } from "../postgres/Parameters.ts"
import { Validations } from "../runtime/Validations.ts"
import { refusalsDropped } from "../telemetry/Metrics.ts"
import { makeBufferedWriter } from "../workers/BufferedWriter.ts"
import { runtimeActions } from "./Action.ts"

/** Refusals in memory: about 10 MB. At once a second more than these are a fault or an attack. */
const waitingMax = 10_000
/** So many do not wait for the schedule. */
const manyWaiting = 2_000
/** Rows of a transaction: while it is written, nothing else gets a sequence number. */
const batchMax = 1_000

const toldByEvents = new Set<Code>(["ACTIVATION_LIMIT_REACHED", "CONTAINER_LIMIT_REACHED"])
/** What a caller calls a feature is shown only where it can be one's code. */
const featureCode = /^[a-z0-9][a-z0-9._-]{0,63}$/

interface Noted {
  readonly call: RuntimeCall
  readonly code: Code
  readonly request_id: string
  readonly ip_address: string | undefined
  readonly occurred_at: number
}

export class Refusals extends Context.Service<
  Refusals,
  {
    /** Notes a refused request, where it is one that the feed tells of. Runs for each refusal, so it is a plain function. */
    note(context: RequestContext, code: Code, now: number): void
    /** Writes what has gathered. */
    readonly pass: Effect.Effect<void, unknown>
    /** Calls for a pass whenever much has gathered. */
    calling(pass: Effect.Effect<void>): Effect.Effect<never>
  }
>()("licensing/activities/Refusals") {
  static readonly layer = Layer.effect(
    Refusals,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const validations = yield* Validations
      const metrics = yield* Effect.context<never>()
      const many = yield* Latch.make(false)
      const waiting: Array<Noted> = []
      // How many of them the pass that runs still hands over.
      let due = 0

      const note = ({ clientAddress, requestId, runtimeCall: call }: RequestContext, code: Code, now: number): void => {
        const status = statuses[code]
        if (call === undefined || status === 401 || status >= 500 || code === "RATE_LIMITED") return
        if (call.operation === "validate") validations.count(call.licenseId, "refused")
        if (toldByEvents.has(code)) return
        if (waiting.length >= waitingMax) refusalsDropped.updateUnsafe(1, metrics)
        else waiting.push({ call, code, request_id: requestId, ip_address: clientAddress, occurred_at: now })
        if (waiting.length === manyWaiting) many.openUnsafe()
      }

      const pass = yield* makeBufferedWriter({
        name: "refusals",
        take: (first) => {
          if (first) due = waiting.length
          const batch = waiting.splice(0, Math.min(due, batchMax))
          due -= batch.length
          return batch.length === 0 ? undefined : batch
        },
        write: (batch) => Effect.flatMap(devicesOf(sql, batch), (devices) => insert(sql, batch, devices))
      })

      return Refusals.of({
        note,
        pass,
        calling: (call) => Effect.forever(many.await.pipe(Effect.andThen(many.close), Effect.andThen(call)))
      })
    })
  )
}

const callsOf = (batch: ReadonlyArray<Noted>) => batch.map(({ call }) => call)

/** The devices that the calls named, where their licenses know them; read before anything is locked. */
const devicesOf = (sql: SqlClient.SqlClient, batch: ReadonlyArray<Noted>) => {
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
 * Gives the refusals their places: behind the last event and the refusals before them, which stand still under the lock of the
 * events' counter. The counter of the events is not moved.
 */
const insert = (sql: SqlClient.SqlClient, batch: ReadonlyArray<Noted>, devices: ReadonlyArray<string | null>) => {
  const features = callsOf(batch).map(({ featureCode: asked }) =>
    asked !== undefined && featureCode.test(asked) ? asked : null
  )
  return Effect.asVoid(sql`
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
}
