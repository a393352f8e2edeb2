/** Removes a customer's data from stored responses of Idempotency-Keys. The rows stay, so that no change is repeated. */
import { Clock, Effect, type Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { sealedFor } from "../../../access/idempotency/StoredResponses.ts"
import { formatTimestamp } from "../../../contract/api/Timestamp.ts"
import { columns } from "../../../platform/postgres/driver/Parameters.ts"
import { mayCompute } from "../../../platform/postgres/driver/Transactions.ts"
import type { MasterKey } from "../../../platform/signing/MasterKey.ts"
import { erasedResponse, type Matches, matcherOf } from "./ErasedText.ts"
import { beginOf, type ErasedRecord, type ErasureRow, placeAt, positionOf, type Step } from "./ErasureStep.ts"

/** Opening this many responses takes a few milliseconds. */
const responsesMax = 200
/** Limit for all responses of a step but the first: the response of a batch may have megabytes. */
const responseBytesMax = 2_000_000

interface ResponseRow {
  readonly scope: Uint8Array
  readonly body: Uint8Array
  readonly sealed: boolean
}

/** Undefined if the body has no data of the customer. */
const erasedBody = (body: Uint8Array, customerId: string, matches: Matches): Uint8Array | undefined => {
  const text = Buffer.from(body).toString("utf8")
  if (!text.startsWith("{")) return undefined
  const before = JSON.parse(text) as Schema.Json
  const after = JSON.stringify(erasedResponse(before, customerId, matches))
  return after === JSON.stringify(before) ? undefined : Buffer.from(after)
}

const writeBodies = (sql: SqlClient.SqlClient, rows: ReadonlyArray<Pick<ResponseRow, "scope" | "body">>) =>
  rows.length === 0
    ? Effect.void
    : Effect.asVoid(sql`
        UPDATE idempotent_answers a SET body = erased.body
        FROM unnest(${columns.bytea(rows.map(({ scope }) => scope))}, ${columns.bytea(rows.map(({ body }) => body))})
          AS erased (scope, body)
        WHERE a.scope = erased.scope`)

/** Responses of renewals are stored permanently and not encrypted. An index finds those of a license. */
export const eraseRenewals = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { customer_id, terms }: ErasureRow,
  records: ReadonlyArray<ErasedRecord>
) {
  const rows = yield* sql<ResponseRow & { readonly id: string }>`
    SELECT scope, body, answered_license(body) AS id FROM idempotent_answers
    WHERE NOT sealed AND answered_license(body) = ANY(${columns.text(records.map(({ id }) => id))})`
  const matchers = new Map(records.map((record) => [record.id, matcherOf([...terms, ...record.terms])]))
  const erased = rows.flatMap(({ body, id, scope }) => {
    const after = erasedBody(body, customer_id, matchers.get(id)!)
    return after === undefined ? [] : [{ scope, body: after }]
  })
  yield* writeBodies(sql, erased)
})

type Keyset = readonly [expiresAt: string, scope: string]

/** The responses of the last day are encrypted, so each is opened. */
export const makeResponseStep = (sql: SqlClient.SqlClient, masterKey: MasterKey["Service"]): Step =>
  Effect.fnUntraced(function* (erasure) {
    const now = yield* Clock.currentTimeMillis
    if (erasure.position === "") {
      // From now on no response made from earlier reads is stored. This waits for responses that are being stored.
      yield* sql`UPDATE erasure_progress SET changes = changes + 1`
      return placeAt("responses", [formatTimestamp(now), ""])
    }
    const [expiresAt, scope] = positionOf<Keyset>(erasure) ?? [formatTimestamp(now), ""]
    const rows = yield* sql<ResponseRow & { readonly at: string }>`
      SELECT scope, body, sealed, expires_at::text AS at FROM (
        SELECT *, sum(octet_length(body)) OVER (ORDER BY expires_at, scope) - octet_length(body) AS bytes_before FROM (
          SELECT * FROM idempotent_answers
          WHERE expires_at >= ${expiresAt}::text::timestamptz
            AND (expires_at, scope) > (${expiresAt}::text::timestamptz, decode(${scope}, 'hex'))
          ORDER BY expires_at, scope LIMIT ${responsesMax}
        ) AS next
      ) AS next WHERE bytes_before <= ${responseBytesMax} ORDER BY expires_at, scope`
    const terms = yield* sql<{ readonly term: string }>`
      SELECT DISTINCT unnest(terms) AS term FROM erasure_records WHERE customer_id = ${erasure.customer_id}
      LIMIT ${termsMax}`
    const matches = matcherOf([...erasure.terms, ...terms.map(({ term }) => term)])
    yield* sql`SELECT ${mayCompute(sql)}`
    const erased: Array<Pick<ResponseRow, "scope" | "body">> = []
    for (const row of rows) {
      const aad = sealedFor(row.scope)
      // A response under a lost master key is unusable anyway.
      const body = row.sealed
        ? yield* Effect.orElseSucceed(masterKey.open(row.body, aad), () => new Uint8Array())
        : row.body
      const after = erasedBody(body, erasure.customer_id, matches)
      if (after !== undefined)
        erased.push({ scope: row.scope, body: row.sealed ? yield* masterKey.seal(after, aad) : after })
    }
    yield* writeBodies(sql, erased)
    const last = rows.at(-1)
    return last === undefined
      ? beginOf("exports")
      : placeAt("responses", [last.at, Buffer.from(last.scope).toString("hex")])
  })

/** Limits the names of licenses to search for. Responses about the customer's own licenses are found without them. */
const termsMax = 1_000
