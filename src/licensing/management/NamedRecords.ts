/**
 * Reads all records that requests for new licenses name, in four statements. Policies, features and customers are
 * locked until the transaction ends. Orders and subscriptions are never deleted.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { unknownId } from "../../contract/api/Failure.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { withoutNulls } from "../../platform/postgres/queries/Sql.ts"
import type { NewLicenseBasis, NewLicenseInput } from "../changes/NewLicense.ts"
import {
  type FeatureRecord,
  type LinkKind,
  type LinkRecord,
  linkKinds,
  type TargetPolicy
} from "../model/LicenseRecords.ts"
import { readTargetPolicies } from "../rows/TargetPolicies.ts"
import { type Refused, reject } from "../rules/LicenseCommand.ts"

type NamedBasis = Pick<NewLicenseBasis, "target" | "links" | "features">

export interface NamedRecords {
  /** The records that a request names, or the refusal of an unknown one. */
  of(input: NewLicenseInput): NamedBasis | Refused<"NOT_FOUND">
}

interface NamedRow {
  readonly kind: "product" | LinkKind
  readonly id: string
  readonly product_id: string | null
  readonly subscription_id: string | null
  /** The period of the subscription, or of the order's subscription. */
  readonly period_start: number | null
  readonly period_end: number | null
}

export const readNamedRecords = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  inputs: ReadonlyArray<NewLicenseInput>
) {
  const ids = (field: "product_id" | "customer_id" | "order_id" | "subscription_id") =>
    columns.text(distinct(inputs.flatMap((input) => input[field] ?? [])))
  // Quotas may follow the period of a subscription, so it must not change before the licenses are written.
  if (inputs.some(({ order_id, subscription_id }) => (order_id ?? subscription_id) !== undefined))
    yield* sql`
      SELECT FROM subscriptions WHERE id = ANY(${ids("subscription_id")})
        OR id IN (SELECT subscription_id FROM orders WHERE id = ANY(${ids("order_id")})) ORDER BY id FOR KEY SHARE`
  const rows = yield* sql<NamedRow>`
    SELECT 'product' AS kind, id, NULL AS product_id, NULL AS subscription_id, NULL::timestamptz AS period_start,
      NULL::timestamptz AS period_end
    FROM products WHERE id = ANY(${ids("product_id")})
    UNION ALL SELECT 'customer', id, NULL, NULL, NULL, NULL FROM (
      SELECT id FROM customers WHERE id = ANY(${ids("customer_id")}) ORDER BY id FOR KEY SHARE
    ) AS customer
    UNION ALL SELECT 'order', o.id, o.product_id, o.subscription_id, s.current_period_start, s.current_period_end
    FROM orders o LEFT JOIN subscriptions s ON s.id = o.subscription_id WHERE o.id = ANY(${ids("order_id")})
    UNION ALL SELECT 'subscription', id, product_id, NULL, current_period_start, current_period_end
    FROM subscriptions WHERE id = ANY(${ids("subscription_id")})`
  const records = new Map(rows.map((row) => [keyOf(row.kind, row.id), row]))
  // Most batches are for one product. If it does not exist, the first license is refused for it.
  if (!records.has(keyOf("product", inputs[0]!.product_id))) return namedRecordsOf(records, new Map(), new Map())
  const policies = yield* readTargetPolicies(sql, distinct(inputs.map(({ policy_id }) => policy_id)), true)
  const features = yield* readFeatures(sql, inputs)
  return namedRecordsOf(records, policies, features)
})

const distinct = (ids: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(ids)]

const keyOf = (kind: NamedRow["kind"], id: string): string => `${kind} ${id}`

const readFeatures = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, inputs: ReadonlyArray<NewLicenseInput>) {
  const ids = distinct(inputs.flatMap(({ features = [] }) => features.map(({ feature_id }) => feature_id)))
  if (ids.length === 0) return new Map<string, FeatureRecord>()
  const rows = yield* sql<FeatureRecord>`
    SELECT id, product_id, code, name FROM features WHERE id = ANY(${columns.text(ids)}) ORDER BY id FOR KEY SHARE`
  return new Map(rows.map((row) => [row.id, row]))
})

const namedRecordsOf = (
  rows: ReadonlyMap<string, NamedRow>,
  policies: ReadonlyMap<string, TargetPolicy>,
  features: ReadonlyMap<string, FeatureRecord>
): NamedRecords => {
  const linkOf = (kind: LinkKind, id: string | undefined) => {
    const row = id === undefined ? undefined : rows.get(keyOf(kind, id))
    if (row === undefined) return undefined
    const { id: _, kind: __, ...named } = row
    return withoutNulls<LinkRecord>({ kind, id: row.id, ...named, name: null, email: null })
  }
  return {
    of: (input) => {
      const target = policies.get(input.policy_id)
      if (!rows.has(keyOf("product", input.product_id))) return unknownRecord("product", input.product_id)
      if (target === undefined) return unknownRecord("policy", input.policy_id)
      for (const kind of linkKinds) {
        const id = input[`${kind}_id`]
        if (id !== undefined && !rows.has(keyOf(kind, id))) return unknownRecord(kind, id)
      }
      const links = {
        order: linkOf("order", input.order_id),
        subscription: linkOf("subscription", input.subscription_id)
      }
      return { target, links, features }
    }
  }
}

const unknownRecord = (noun: "product" | "policy" | LinkKind, id: string) =>
  reject("NOT_FOUND", unknownId(noun, id), { detail: `${noun}_id` })
