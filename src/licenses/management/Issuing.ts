/**
 * Issues licenses: reads what a request names, generates the key, and returns it once. A license is drafted, then written;
 * many can be drafted and written in one transaction.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient, type SqlError } from "effect/sql"
import { type Refusal, refuse, refuseUnknownId } from "../../api/Failure.ts"
import { Identifiers } from "../../api/Identifier.ts"
import { EventLog } from "../../events/EventLog.ts"
import { columns } from "../../postgres/Parameters.ts"
import { constraints, isConcurrentChange, transaction, withoutNulls } from "../../postgres/Sql.ts"
import { isErasing } from "../changes/Linkage.ts"
import { type NewLicense, type NewLicenseInput, newLicense } from "../changes/NewLicense.ts"
import type { LicenseWithKey } from "../model/License.ts"
import * as LicenseKey from "../model/LicenseKey.ts"
import type { FeatureRecord, LicenseRecord, LinkKind, LinkRecord, PolicyRecord } from "../model/LicenseRecords.ts"
import { writeAssignments } from "../rows/AssignmentRows.ts"
import { readTargetPolicy } from "../rows/TargetPolicies.ts"
import { presentLicense } from "./PresentLicense.ts"

type Refusals = Refusal<"NOT_FOUND" | "CONFLICT" | "LINKAGE_MISMATCH" | "VALIDATION_ERROR" | "EXPIRY_NOT_IN_FUTURE">

/** A license that is decided and not yet written. */
interface Draft extends NewLicense {
  readonly policy: PolicyRecord
  readonly license_key: string
}

export class Issuing extends Context.Service<
  Issuing,
  {
    /** Issues a license. The response is the only place where the full key ever appears. */
    create(input: NewLicenseInput): Effect.Effect<typeof LicenseWithKey.Type, Refusals>
  }
>()("licensing/licenses/management/Issuing") {
  static readonly layer = Layer.effect(
    Issuing,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { draft, write } = yield* makeDrafts
      const create = Effect.fn("Issuing.create")(function* (input: NewLicenseInput) {
        const drafted = yield* draft(input)
        yield* write([drafted])
        return yield* presentDraft(drafted)
      }, transaction(sql))
      return Issuing.of({ create })
    })
  )
}

/**
 * `draft` reads and decides; it writes nothing, and locks the policy and the named features until the transaction ends.
 * `write` writes licenses with their features and events. Both run within the caller's transaction; `write` takes the event
 * counter's lock, so it is called once and last.
 */
const makeDrafts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Identifiers
  const events = yield* EventLog
  const random = yield* SecureRandom.SecureRandom

  const draft = Effect.fnUntraced(function* (
    input: NewLicenseInput
  ): Effect.fn.Return<Draft, Refusals | SqlError.SqlError> {
    const { target, ...named } = yield* readNamed(sql, input)
    const license_key = yield* Effect.provideService(LicenseKey.generate, SecureRandom.SecureRandom, random)
    const key = {
      key_hash: LicenseKey.hashHex(license_key),
      license_key_prefix: LicenseKey.prefix(license_key),
      license_key_last4: LicenseKey.last4(license_key)
    }
    const now = yield* Clock.currentTimeMillis
    const decided = newLicense(input, { target, ...named, id: yield* ids.make("license"), key }, now)
    if (!decided.accepted) return yield* refuse(decided.code, decided.message, decided.detail)
    return { ...decided, policy: target.policy, license_key }
  })

  const write = Effect.fnUntraced(function* (drafts: ReadonlyArray<Draft>) {
    // Orders and subscriptions are never deleted. A policy, and so its product, and features are locked.
    yield* insertLicenses(
      sql,
      drafts.map(({ license }) => license)
    ).pipe(
      constraints({ licenses_customer_id_fkey: () => unknownLink("customer_id", drafts[0]?.license.customer_id) }),
      Effect.catchIf(isConcurrentChange, () => Effect.fail(refuse("CONFLICT", isErasing, "customer_id")))
    )
    const assignments = drafts.flatMap(({ assignments, license }) =>
      assignments.map((assignment) => ({ ...assignment, license_id: license.id }))
    )
    if (assignments.length > 0) yield* writeAssignments(sql, assignments)
    yield* events.append(...drafts.map(({ event }) => event))
  })

  return { draft, write }
})

const presentDraft = ({ license, license_key, policy }: Draft) =>
  Effect.map(Clock.currentTimeMillis, (now) => ({ license: presentLicense(license, policy, 0, now), license_key }))

/** The records that the ids in a request name; null if there is no such row. */
interface NamedRows {
  readonly product: string | null
  readonly customer: string | null
  readonly order: string | null
  readonly order_product: string | null
  readonly order_subscription: string | null
  readonly subscription: string | null
  readonly subscription_product: string | null
}

const readNamed = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, input: NewLicenseInput) {
  const [rows] = yield* sql<NamedRows>`
    SELECT (SELECT id FROM products WHERE id = ${input.product_id}) AS product,
      (SELECT id FROM customers WHERE id = ${input.customer_id ?? null}) AS customer,
      (SELECT id FROM orders WHERE id = ${input.order_id ?? null}) AS order,
      (SELECT product_id FROM orders WHERE id = ${input.order_id ?? null}) AS order_product,
      (SELECT subscription_id FROM orders WHERE id = ${input.order_id ?? null}) AS order_subscription,
      (SELECT id FROM subscriptions WHERE id = ${input.subscription_id ?? null}) AS subscription,
      (SELECT product_id FROM subscriptions WHERE id = ${input.subscription_id ?? null}) AS subscription_product`
  const named = rows!
  if (named.product === null) return yield* unknownLink("product_id", input.product_id)
  const target = yield* readTargetPolicy(sql, input.policy_id, true)
  if (target === undefined) return yield* unknownLink("policy_id", input.policy_id)
  for (const kind of ["customer", "order", "subscription"] as const) {
    const id = input[`${kind}_id`]
    if (id !== undefined && named[kind] === null) return yield* unknownLink(`${kind}_id`, id)
  }
  const links = {
    order: linkRecord("order", named.order, named.order_product, named.order_subscription),
    subscription: linkRecord("subscription", named.subscription, named.subscription_product, null)
  }
  return { target, links, features: yield* readFeatures(sql, input) }
})

const unknownLink = (field: string, id = "") => refuseUnknownId(field.slice(0, -"_id".length), id, field)

const linkRecord = (kind: LinkKind, id: string | null, product_id: string | null, subscription_id: string | null) =>
  id === null ? undefined : withoutNulls<LinkRecord>({ kind, id, product_id, subscription_id, name: null, email: null })

const readFeatures = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { features = [] }: NewLicenseInput) {
  if (features.length === 0) return new Map<string, FeatureRecord>()
  const rows = yield* sql<FeatureRecord>`
    SELECT id, product_id, code, name FROM features
    WHERE id = ANY(${columns.text(features.map(({ feature_id }) => feature_id))}) ORDER BY id FOR KEY SHARE`
  return new Map(rows.map((row) => [row.id, row]))
})

const insertLicenses = (sql: SqlClient.SqlClient, rows: ReadonlyArray<LicenseRecord>) => {
  const text = (column: keyof LicenseRecord) =>
    sql`unnest(${columns.text(rows.map((row) => (row[column] as string | undefined) ?? null))})`
  const instants = (column: keyof LicenseRecord) =>
    sql`unnest(${columns.timestamptz(rows.map((row) => (row[column] as number | undefined) ?? null))})`
  const integers = (column: keyof LicenseRecord) =>
    sql`unnest(${columns.int4(rows.map((row) => (row[column] as number | undefined) ?? null))})`
  return sql`
    INSERT INTO licenses (id, product_id, policy_id, customer_id, order_id, subscription_id, key_hash, license_key_prefix,
      license_key_last4, status, customer_email, customer_name, starts_at, expires_at, maintenance_expires_at,
      max_activations, max_container_instances, max_floating_users, max_transfers, offline_grace_days, term_days, metadata,
      heartbeat_from, created_at, updated_at)
    SELECT ${text("id")}, ${text("product_id")}, ${text("policy_id")}, ${text("customer_id")}, ${text("order_id")},
      ${text("subscription_id")}, decode(${text("key_hash")}, 'hex'), ${text("license_key_prefix")},
      ${text("license_key_last4")}, ${text("status")}, ${text("customer_email")}, ${text("customer_name")},
      ${instants("starts_at")}, ${instants("expires_at")}, ${instants("maintenance_expires_at")},
      ${integers("max_activations")}, ${integers("max_container_instances")}, ${integers("max_floating_users")},
      ${integers("max_transfers")}, ${integers("offline_grace_days")}, ${integers("term_days")},
      unnest(${columns.jsonb(rows.map((row) => row.metadata))}), ${instants("heartbeat_from")}, ${instants("created_at")},
      ${instants("updated_at")}`
}
