/** Issues licenses: checks their links, generates the key, and returns it once. */
import { Clock, Context, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { type Refusal, refuse, refuseUnknownId } from "../../api/Failure.ts"
import { Identifiers } from "../../api/Identifier.ts"
import { heartbeatDueAt } from "../../catalog/policies/Policy.ts"
import { recordedValue } from "../../events/Changes.ts"
import { EventLog } from "../../events/EventLog.ts"
import { bytes, instant, json } from "../../postgres/Parameters.ts"
import { constraints, transaction, withoutNulls } from "../../postgres/Sql.ts"
import { refuseLinks } from "../changes/Linkage.ts"
import { type LoadedLicense, type Nullable, policyColumns, policyOf } from "../engine/LicenseRows.ts"
import type { LicenseCreate, LicenseWithKey } from "../model/License.ts"
import * as LicenseKey from "../model/LicenseKey.ts"
import type { LicenseRecord, LinkKind, LinkRecord } from "../model/LicenseRecords.ts"
import type { Refused } from "../rules/LicenseCommand.ts"
import { refusePast, refuseTerms } from "../rules/Terms.ts"
import { presentLicense } from "./PresentLicense.ts"

type Input = typeof LicenseCreate.Type
type Refusals = Refusal<"NOT_FOUND" | "LINKAGE_MISMATCH" | "VALIDATION_ERROR" | "EXPIRY_NOT_IN_FUTURE">

/** The records that the ids in a create request name; null if there is no such row. */
interface Links {
  readonly product: string | null
  readonly policy: string | null
  readonly policy_product: string | null
  readonly customer: string | null
  readonly order: string | null
  readonly order_product: string | null
  readonly order_subscription: string | null
  readonly subscription: string | null
  readonly subscription_product: string | null
}

export class Issuing extends Context.Service<
  Issuing,
  {
    /** Issues a license. The response is the only place where the full key ever appears. */
    create(input: Input): Effect.Effect<typeof LicenseWithKey.Type, Refusals>
  }
>()("licensing/licenses/management/Issuing") {
  static readonly layer = Layer.effect(
    Issuing,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Identifiers
      const events = yield* EventLog
      const random = yield* SecureRandom.SecureRandom

      const create = Effect.fn("Issuing.create")(function* (input: Input) {
        const { links, policy } = yield* readLinks(sql, input)
        const now = yield* Clock.currentTimeMillis
        const refused = refuseTerms(policy.license_type, input) ?? refusePast(input, now)
        if (refused !== undefined) return yield* asRefusal(refused)
        const key = yield* Effect.provideService(LicenseKey.generate, SecureRandom.SecureRandom, random)
        const subscription_id = input.subscription_id ?? links.order_subscription ?? undefined
        const license: LicenseRecord = {
          metadata: {},
          ...input,
          ...(subscription_id === undefined ? undefined : { subscription_id }),
          ...initialState,
          id: yield* ids.make("license"),
          key_hash: LicenseKey.hashHex(key),
          license_key_prefix: LicenseKey.prefix(key),
          license_key_last4: LicenseKey.last4(key),
          heartbeat_from: heartbeatDueAt(policy, now),
          created_at: now,
          updated_at: now
        }
        // The policy is locked, and so its product is kept. Orders and subscriptions are never deleted.
        yield* insert(sql, license).pipe(
          constraints({ licenses_customer_id_fkey: () => unknownLink("customer_id", license.customer_id) })
        )
        yield* events.append({
          event_type: "license.created",
          resource_type: "license",
          resource_id: license.id,
          metadata: createdMetadata(license, policy.license_type)
        })
        return { license: presentLicense(license, policy, 0, now), license_key: key }
      }, transaction(sql))

      return Issuing.of({ create })
    })
  )
}

/** The state and counters of a new license. */
const initialState = {
  status: "active",
  active_device_count: 0,
  times_activated: 0,
  times_transferred: 0,
  total_consumptions: 0,
  entitlement_counter: 1,
  revision: 1
} as const

const asRefusal = <C extends "VALIDATION_ERROR" | "EXPIRY_NOT_IN_FUTURE" | "LINKAGE_MISMATCH">({
  code,
  message,
  detail
}: Refused<C>) => refuse(code, message, detail)

/** Reads the records that the request links to and checks them (docs/API.md, "Orders and subscriptions": linkage rules 1 to 3). */
const readLinks = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, input: Input) {
  const [links] = yield* sql<Links>`
    SELECT (SELECT id FROM products WHERE id = ${input.product_id}) AS product,
      (SELECT id FROM policies WHERE id = ${input.policy_id}) AS policy,
      (SELECT product_id FROM policies WHERE id = ${input.policy_id}) AS policy_product,
      (SELECT id FROM customers WHERE id = ${input.customer_id ?? null}) AS customer,
      (SELECT id FROM orders WHERE id = ${input.order_id ?? null}) AS order,
      (SELECT product_id FROM orders WHERE id = ${input.order_id ?? null}) AS order_product,
      (SELECT subscription_id FROM orders WHERE id = ${input.order_id ?? null}) AS order_subscription,
      (SELECT id FROM subscriptions WHERE id = ${input.subscription_id ?? null}) AS subscription,
      (SELECT product_id FROM subscriptions WHERE id = ${input.subscription_id ?? null}) AS subscription_product`
  const refusal = refuseUnknownLink(input, links!) ?? refuseMismatchedLink(input, links!)
  if (refusal !== undefined) return yield* refusal
  const [row] = yield* sql<LoadedLicense>`
    SELECT p.id AS policy_id, ${sql.literal(policyColumns)} FROM policies p WHERE p.id = ${input.policy_id} FOR KEY SHARE`
  if (row === undefined) return yield* unknownLink("policy_id", input.policy_id)
  return { links: links!, policy: policyOf(row) }
})

const unknownLink = (field: string, id = "") => refuseUnknownId(field.slice(0, -"_id".length), id, field)

const refuseUnknownLink = (input: Input, links: Links) => {
  const named = [
    ["product_id", input.product_id, links.product],
    ["policy_id", input.policy_id, links.policy],
    ["customer_id", input.customer_id, links.customer],
    ["order_id", input.order_id, links.order],
    ["subscription_id", input.subscription_id, links.subscription]
  ] as const
  const missing = named.find(([, id, existing]) => id !== undefined && existing === null)
  return missing === undefined ? undefined : unknownLink(missing[0], missing[1])
}

const refuseMismatchedLink = (input: Input, links: Links) => {
  if (links.policy_product !== input.product_id) {
    return refuse(
      "LINKAGE_MISMATCH",
      "The policy belongs to another product than the license: use a policy of the license's product.",
      "policy_id"
    )
  }
  const refused = refuseLinks(input.product_id, {
    order: linkRecord("order", links.order, links.order_product, links.order_subscription),
    subscription: linkRecord("subscription", links.subscription, links.subscription_product, null)
  })
  return refused === undefined ? undefined : asRefusal(refused)
}

const linkRecord = (kind: LinkKind, id: string | null, product_id: string | null, subscription_id: string | null) =>
  id === null ? undefined : withoutNulls<LinkRecord>({ kind, id, product_id, subscription_id, name: null, email: null })

const createdMetadata = (license: LicenseRecord, license_type: string) => ({
  product_id: license.product_id,
  policy_id: license.policy_id,
  license_type,
  ...Object.fromEntries(
    (
      ["customer_id", "order_id", "subscription_id", "starts_at", "expires_at", "maintenance_expires_at"] as const
    ).flatMap((field) => (license[field] === undefined ? [] : [[field, recordedValue(field, license[field])]]))
  )
})

const insert = (sql: SqlClient.SqlClient, license: LicenseRecord) => {
  const row = license as Nullable<LicenseRecord>
  return sql`
    INSERT INTO licenses (id, product_id, policy_id, customer_id, order_id, subscription_id, key_hash, license_key_prefix,
      license_key_last4, status, customer_email, customer_name, starts_at, expires_at, maintenance_expires_at, metadata,
      heartbeat_from, created_at, updated_at)
    VALUES (${row.id}, ${row.product_id}, ${row.policy_id}, ${row.customer_id}, ${row.order_id}, ${row.subscription_id},
      ${bytes(Buffer.from(row.key_hash, "hex"))}, ${row.license_key_prefix}, ${row.license_key_last4}, ${row.status},
      ${row.customer_email}, ${row.customer_name}, ${instant(row.starts_at ?? null)}, ${instant(row.expires_at ?? null)},
      ${instant(row.maintenance_expires_at ?? null)}, ${json(row.metadata)},
      ${instant(row.heartbeat_from)}, ${instant(row.created_at)}, ${instant(row.updated_at)})`
}
