/** Services on a database: ids, the event log, products and policies to work on, and the events that an effect records. */
import { assert } from "@effect/vitest"
import { Clock, Effect, Layer, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import type { Refusal } from "../../../src/contract/api/Failure.ts"
import { Identifiers } from "../../../src/contract/api/Identifier.ts"
import type { Keyset, Page } from "../../../src/contract/api/Paging.ts"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { instant, json } from "../../../src/platform/postgres/driver/Parameters.ts"
import { sha256 } from "../../../src/platform/signing/Digest.ts"
import { MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import { Policies } from "../../../src/vendor/policies/Policies.ts"
import { Products } from "../../../src/vendor/products/Products.ts"
import { Database } from "./Database.ts"

const masterKey = Redacted.make(Buffer.alloc(32, 7).toString("base64"))

export const Foundations = Layer.mergeAll(Identifiers.layer, EventLog.layer, MasterKey.layerFromKey(masterKey)).pipe(
  Layer.provideMerge(SecureRandom.layerWebCrypto),
  Layer.provideMerge(Database.layer)
)

interface Recorded {
  readonly event_type: string
  readonly resource_type: string
  readonly actor_type: string
  readonly actor_id: string
  readonly metadata: { readonly [key: string]: unknown }
}

/** The events of a resource, the oldest first. */
export const eventsOf = Effect.fnUntraced(function* (resourceId: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Recorded>`
    SELECT event_type, resource_type, actor_type, actor_id, metadata FROM events
    WHERE resource_id = ${resourceId} ORDER BY sequence`
})

/** Runs an effect and returns the events that it records, without request ids. */
export const recorded = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  const [before] = yield* sql<{ last: number }>`SELECT last FROM event_sequence`
  const answer = yield* effect
  const rows = yield* sql<Recorded>`
    SELECT event_type, resource_type, metadata FROM events WHERE sequence > ${before?.last ?? 0} ORDER BY sequence`
  const events = rows.map(({ event_type, resource_type, metadata: { request_id: _, ...metadata } }) => ({
    event_type,
    resource_type,
    metadata
  }))
  return { answer, events }
})

/** The code and detail of an effect's refusal. The effect must be refused and record no event. */
export const refusalOf = Effect.fnUntraced(function* <R>(effect: Effect.Effect<unknown, Refusal, R>) {
  const { answer, events } = yield* recorded(Effect.flip(effect))
  assert.deepStrictEqual(events, [])
  const { code, detail } = answer
  return [code, detail] as readonly [Code, string | undefined]
})

/** Reads a list page by page, `limit` rows at a time; `between` runs after every page. */
export const walk = Effect.fnUntraced(function* <A, E, R, E2, R2>(
  list: (page: { readonly limit: number; readonly cursor?: Keyset }) => Effect.Effect<Page<A>, E, R>,
  limit: number,
  between: Effect.Effect<unknown, E2, R2>
) {
  const items: Array<A> = []
  let page = yield* list({ limit })
  items.push(...page.items)
  while (page.next !== undefined) {
    yield* between
    page = yield* list({ limit, cursor: page.next })
    items.push(...page.items)
  }
  return items
})

/** Makes a product that no other test uses. */
export const makeProduct = Effect.gen(function* () {
  const id = yield* (yield* Identifiers).make("product")
  return yield* (yield* Products).create({ name: "A product", code: id.toLowerCase() })
})

/** Makes a policy that no other test uses, by default of a new product. */
export const makePolicy = Effect.fnUntraced(function* (productId?: string) {
  const id = yield* (yield* Identifiers).make("policy")
  const product_id = productId ?? (yield* makeProduct).id
  return yield* (yield* Policies).create(product_id, {
    name: "A policy",
    code: id.toLowerCase(),
    license_type: "perpetual"
  })
})

/** The revision of a product's catalog, as licenses compare it. */
export const catalogRevision = Effect.fnUntraced(function* (productId: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ catalog_revision: number }>`SELECT catalog_revision FROM products WHERE id = ${productId}`
  return row?.catalog_revision
})

interface LicenseInput {
  readonly product_id: string
  readonly policy_id: string
  readonly status?: string
  readonly customer_id?: string
  readonly order_id?: string
  readonly subscription_id?: string
}

/** Inserts a license row, for services that only check that one exists. */
export const insertLicense = Effect.fnUntraced(function* (license: LicenseInput) {
  const sql = yield* SqlClient.SqlClient
  const id = yield* (yield* Identifiers).make("license")
  const now = instant(yield* Clock.currentTimeMillis)
  const row = {
    status: "active",
    ...license,
    id,
    key_hash: sha256(id),
    license_key_prefix: "LK-00000",
    license_key_last4: "0000"
  }
  yield* sql`INSERT INTO licenses ${sql.insert({ ...row, metadata: json({}), created_at: now, updated_at: now })}`
  return id
})
