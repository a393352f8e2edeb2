/**
 * Erases customers: removes a customer's name, email, metadata and custom field values from all recorded data. The request empties
 * the customer's row at once. The rest runs in short transactions, because a customer may have 100,000 licenses;
 * the table `erasures` stores the next step, so that any node continues after a crash. The event is written at the end.
 *
 * What must stay true: until the end no license can be linked to the customer or get a name or email. A trigger rejects this under
 * the customer's lock, so no earlier decision can be written after the request.
 */
import { Cause, Clock, Context, Effect, Layer, Option } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { CurrentActor } from "../../../access/CurrentActor.ts"
import { type Refusal, refuseUnknownId } from "../../../contract/api/Failure.ts"
import { RequestContext } from "../../../contract/api/RequestContext.ts"
import { formatTimestamp } from "../../../contract/api/Timestamp.ts"
import type { AuditActorType } from "../../../ledger/events/Event.ts"
import { EventLog } from "../../../ledger/events/EventLog.ts"
import { monotonicMillis } from "../../../platform/postgres/driver/Deadline.ts"
import { columns, instant, int8 } from "../../../platform/postgres/driver/Parameters.ts"
import { retryTransaction } from "../../../platform/postgres/driver/Transactions.ts"
import { nextRevision } from "../../../platform/postgres/queries/Revision.ts"
import { transaction } from "../../../platform/postgres/queries/Sql.ts"
import { MasterKey } from "../../../platform/signing/MasterKey.ts"
import { makeThrottle } from "../../../platform/workers/Exclusive.ts"
import { sendHeartbeat } from "../../../platform/workers/PassHeartbeat.ts"
import { Workers } from "../../../platform/workers/Workers.ts"
import type { CustomerErasure } from "./Erasure.ts"
import { beginOf, type ErasureRow, type Phase, type Step, textsOf } from "./ErasureStep.ts"
import { makeEventSteps } from "./EventErasure.ts"
import { makeExportStep } from "./ExportErasure.ts"
import { makeLicenseSteps } from "./LicenseErasure.ts"
import { makeMailStep } from "./MailErasure.ts"
import { makeResponseStep } from "./ResponseErasure.ts"
import { makeStatisticsStep } from "./StatisticsErasure.ts"

export const erasureWorker = "erasures"

/** How long a request waits for its erasure; enough for most customers, who have few licenses. */
const waitMillisMax = 2_000

export class Erasures extends Context.Service<
  Erasures,
  {
    /** Starts an erasure, and finishes it if that is quick. For an erased customer it only returns the state. */
    erase(id: string): Effect.Effect<CustomerErasure, Refusal<"NOT_FOUND">>
    /** The worker's pass: finishes all erasures. Those that fail wait longer after each attempt. */
    readonly pass: Effect.Effect<void, unknown>
    /**
     * The next step of one erasure: of the given customer, or the oldest that waits for no other attempt. False if none is left,
     * another node is at it, or the step of the given customer failed.
     */
    step(customerId?: string): Effect.Effect<boolean, SqlError.SqlError>
  }
>()("licensing/vendor/customers/erasure/Erasures") {
  static readonly layer = Layer.effect(
    Erasures,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workers = yield* Effect.serviceOption(Workers)
      const wake = Option.match(workers, { onNone: () => Effect.void, onSome: ({ wake }) => wake(erasureWorker) })
      const clock = yield* Clock.Clock
      const begin = yield* makeBegin
      const step = yield* makeStep

      const stateOf = Effect.fnUntraced(function* (id: string) {
        const [row] = yield* Effect.orDie(customerOf(sql, id, false))
        return row === undefined ? yield* refuseUnknownId("customer", id) : presented(row)
      })

      const finish = Effect.fnUntraced(function* (id: string) {
        const until = monotonicMillis(clock) + waitMillisMax
        while (monotonicMillis(clock) < until && (yield* step(id)));
      })

      const erase = Effect.fn("Erasures.erase")(function* (id: string) {
        if (!(yield* begin(id))) return yield* stateOf(id)
        // Within the transaction of an Idempotency-Key the worker finishes: the steps are transactions of their own.
        const within = yield* Effect.serviceOption(sql.transactionService)
        if (Option.isSome(within)) {
          yield* sql.afterCommit(wake)
          return yield* stateOf(id)
        }
        // The worker retries what fails here.
        yield* Effect.catchIf(finish(id), SqlError.isSqlError, (error) =>
          Effect.logWarning("An erasure continues in the background.", { customer: id }, error)
        )
        const state = yield* stateOf(id)
        if (state.status === "erasing") yield* wake
        return state
      })

      const throttle = makeThrottle()
      const pass = Effect.gen(function* () {
        while (yield* throttle(step())) yield* sendHeartbeat
      })
      return Erasures.of({ erase, step, pass: Effect.withSpan(pass, "Erasures.pass") })
    })
  )
}

interface CustomerRow {
  readonly id: string
  readonly name: string
  readonly email: string | null
  readonly has_metadata: boolean
  readonly erasing: boolean
  readonly erased_at: number | null
  readonly attempts: number | null
  readonly retry_at: number | null
}

const customerOf = (sql: SqlClient.SqlClient, id: string, lock: boolean) => sql<CustomerRow>`
  SELECT id, name, email, metadata <> '{}' AS has_metadata, erasing, erased_at, e.attempts, e.retry_at
  FROM customers LEFT JOIN erasures e ON e.customer_id = id WHERE id = ${id}
  ${sql.literal(lock ? "FOR UPDATE OF customers" : "")}`

const presented = ({ attempts, erased_at, erasing, id, retry_at }: CustomerRow): CustomerErasure => {
  if (!erasing && erased_at !== null) return { customer_id: id, status: "erased", erased_at }
  const failure = attempts !== null && retry_at !== null ? { failed_attempts: attempts, retry_at } : undefined
  return { customer_id: id, status: "erasing", ...failure }
}

/** Empties the customer's row and records the erasure. False if the customer is erased and nothing was added since. */
const makeBegin = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const isEmpty = Effect.fnUntraced(function* ({ email, erased_at, has_metadata, id, name }: CustomerRow) {
    if (erased_at === null || name !== "" || email !== null || has_metadata) return false
    const [row] = yield* sql<{ readonly is_empty: boolean }>`
      SELECT NOT EXISTS (SELECT FROM custom_field_values WHERE customer_id = ${id})
        AND NOT EXISTS (SELECT FROM licenses WHERE customer_id = ${id} AND (customer_name IS NOT NULL OR customer_email IS NOT NULL))
        AS is_empty`
    return row!.is_empty
  })

  const termsOf = Effect.fnUntraced(function* ({ email, id, name }: CustomerRow) {
    const events = yield* sql<{ readonly texts: ReadonlyArray<string | null> }>`
      SELECT jsonb_build_array(metadata -> 'name', metadata #> '{changes,name,old}', metadata #> '{changes,name,new}',
        metadata #> '{changes,email,old}', metadata #> '{changes,email,new}') AS texts
      FROM event_log WHERE resource_id = ${id} AND event_type IN ('customer.created', 'customer.updated')`
    return [...new Set(textsOf([name, email, ...events.flatMap(({ texts }) => texts)]))]
  })

  return Effect.fnUntraced(function* (id: string) {
    const [row] = yield* customerOf(sql, id, true)
    if (row === undefined) return yield* refuseUnknownId("customer", id)
    if (row.erasing) return true
    if (yield* isEmpty(row)) return false
    const { clientAddress, requestId } = yield* RequestContext
    const { actor_id, actor_name = null, actor_type } = yield* CurrentActor
    const now = instant(yield* Clock.currentTimeMillis)
    const { phase, position } = beginOf("licenses")
    yield* sql`
      INSERT INTO erasures (customer_id, phase, position, terms, actor_type, actor_id, actor_name, request_id, ip_address, requested_at)
      VALUES (${id}, ${phase}, ${position}, ${columns.text(yield* termsOf(row))}, ${actor_type}, ${actor_id}, ${actor_name}, ${requestId},
        ${clientAddress ?? null}, ${now})`
    yield* sql`
      UPDATE customers SET name = '', email = NULL, metadata = '{}', erasing = TRUE, erased_at = NULL, updated_at = ${now},
        erasure_revision = ${int8(yield* nextRevision)}
      WHERE id = ${id}`
    yield* sql`DELETE FROM custom_field_values WHERE customer_id = ${id}`
    return true
  }, transaction(sql))
})

const makeStep = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const events = yield* EventLog
  const masterKey = yield* MasterKey

  const steps: { readonly [K in Exclude<Phase, "end">]: Step } = {
    ...makeLicenseSteps(sql, events),
    mails: makeMailStep(sql, masterKey),
    ...makeEventSteps(sql),
    responses: makeResponseStep(sql, masterKey),
    exports: makeExportStep(sql),
    statistics: makeStatisticsStep(sql)
  }

  const end = Effect.fnUntraced(function* (erasure: ErasureRow) {
    const { actor_id, actor_name, actor_type, customer_id, ip_address, request_id, terms } = erasure
    const now = yield* Clock.currentTimeMillis
    const addresses = sql`
      SELECT lower(unnest(${columns.text(terms)}))
      UNION SELECT lower(unnest(terms)) FROM erasure_records WHERE customer_id = ${customer_id}`
    yield* sql`DELETE FROM portal_sessions WHERE address IN (${addresses})`
    yield* sql`DELETE FROM portal_links WHERE address IN (${addresses})`
    yield* sql`DELETE FROM erasure_records WHERE customer_id = ${customer_id}`
    yield* sql`DELETE FROM erasures WHERE customer_id = ${customer_id}`
    yield* sql`
      UPDATE customers SET erasing = FALSE, erased_at = ${instant(now)}, updated_at = ${instant(now)} WHERE id = ${customer_id}`
    yield* events.appendRows([
      {
        event_type: "customer.erased",
        resource_type: "customer",
        resource_id: customer_id,
        actor_type: actor_type as AuditActorType,
        actor_id,
        actor_name: actor_name ?? undefined,
        ip_address: ip_address ?? undefined,
        created_at: now,
        metadata: { request_id }
      }
    ])
  })

  // Stored entries of earlier commits may name the customer, and the steps search only numbered events.
  const next = (customerId: string | undefined, begun: (erasure: ErasureRow) => void) =>
    Effect.andThen(
      events.numberWaiting,
      retryTransaction(
        sql.withTransaction(
          Effect.gen(function* () {
            const now = instant(yield* Clock.currentTimeMillis)
            const [erasure] = yield* sql<ErasureRow>`
            SELECT customer_id, phase, position, terms, actor_type, actor_id, actor_name, request_id, ip_address, attempts FROM erasures
            WHERE ${customerId === undefined ? sql`coalesce(retry_at <= ${now}, TRUE)` : sql`customer_id = ${customerId}`}
            ORDER BY requested_at, customer_id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED`
            if (erasure === undefined) return false
            begun(erasure)
            if (erasure.phase === "end") {
              yield* end(erasure)
              return true
            }
            const { phase, position } = yield* steps[erasure.phase](erasure)
            yield* sql`
            UPDATE erasures SET phase = ${phase}, position = ${position}, attempts = 0, retry_at = NULL
            WHERE customer_id = ${erasure.customer_id}`
            return true
          })
        )
      )
    )

  const noteFailure = Effect.fnUntraced(function* ({ attempts, customer_id }: ErasureRow, cause: Cause.Cause<unknown>) {
    const pause = pausesSeconds[attempts] ?? pausesSeconds.at(-1)!
    const retryAt = (yield* Clock.currentTimeMillis) + pause * 1_000
    yield* sql`
      UPDATE erasures SET attempts = attempts + 1, retry_at = ${instant(retryAt)} WHERE customer_id = ${customer_id}`
    const facts = { customer: customer_id, attempts: attempts + 1, retry_at: formatTimestamp(retryAt) }
    yield* Effect.logError("A step of an erasure failed; retrying later.", facts, cause)
  })

  return (customerId?: string) =>
    Effect.suspend(() => {
      let erasure: ErasureRow | undefined
      const begun = (row: ErasureRow) => {
        erasure = row
      }
      return Effect.catchCause(next(customerId, begun), (cause) =>
        erasure === undefined || Cause.hasInterrupts(cause)
          ? Effect.failCause(cause)
          : Effect.as(noteFailure(erasure, cause), customerId === undefined)
      )
    })
})

/** The pause after each failure in a row. The first failure may be a lock; repeated failures need an operator. */
const pausesSeconds = [5, 60, 600, 3_600, 21_600]
