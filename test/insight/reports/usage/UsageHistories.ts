/** Random histories of a usage ledger, and the expected summary computed from the ledger only. */

import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as fc from "fast-check"
import type { Grouping, UsageSummaryFilter } from "../../../../src/insight/reports/model/Filter.ts"
import { ReportsDatabase } from "../../../../src/insight/reports/model/ReportsDatabase.ts"
import { usageSummary } from "../../../../src/insight/reports/usage/UsageSummary.ts"
import type { UsageAction } from "../../../../src/ledger/events/Entry.ts"
import { Settings } from "../../../../src/platform/config/Config.ts"
import { columns, instant } from "../../../../src/platform/postgres/driver/Parameters.ts"
import { makeLicense } from "../../../support/database/StoredLicenses.ts"

export const minute = 60_000
export const hour = 60 * minute
export const day = 24 * hour

export interface TimeOfDay {
  readonly advance: (millis: number) => void
}

/** Runs a test with a clock that only the test moves. As work takes no time on it, no pause follows work. */
export const onTime = <A, E, R>(now: number, test: (clock: TimeOfDay) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(Clock.Clock, (machine) => {
    let time = now
    const clock = Object.assign(Object.create(machine) as Clock.Clock, {
      currentTimeMillis: Effect.sync(() => time),
      monotonicTimeNanosUnsafe: () => 0n
    })
    const advance = (millis: number) => {
      time += millis
    }
    return Effect.provideService(test({ advance }), Clock.Clock, clock)
  })

/** A product with three licenses, and three features that have the same codes in every product. */
export const makeProduct = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { feature, license, product } = yield* makeLicense()
  const copies = ["_1", "_2"]
  for (const [index, copy] of copies.entries()) {
    yield* sql`
      INSERT INTO licenses (id, product_id, policy_id, key_hash, license_key_prefix, license_key_last4, status, metadata,
        created_at, updated_at)
      SELECT id || ${copy}, product_id, policy_id, sha256((id || ${copy})::bytea), license_key_prefix, license_key_last4,
        status, metadata, created_at, updated_at
      FROM licenses WHERE id = ${license}`
    yield* sql`
      INSERT INTO features (id, product_id, name, code, metadata, created_at)
      SELECT id || ${copy}, product_id, name, ${["render", "scan"][index]!}, metadata, created_at FROM features
      WHERE id = ${feature}`
  }
  yield* sql`DELETE FROM license_features WHERE license_id = ${license}`
  const each = (id: string) => [id, ...copies.map((copy) => id + copy)] as const
  return { product, licenses: each(license), features: each(feature) }
})

export type Product = Effect.Success<typeof makeProduct>

export interface Use {
  readonly product: 0 | 1
  readonly license: 0 | 1 | 2
  readonly feature: 0 | 1 | 2
  readonly action: UsageAction
  readonly amount: number
  readonly credits?: number | undefined
  readonly overage?: number | undefined
  /** When it happened, in milliseconds before its commit. */
  readonly age: number
}

let written = 0

/** Appends rows to the ledger, as a group of the journal does. */
export const append = Effect.fnUntraced(function* (
  products: ReadonlyArray<Product>,
  uses: ReadonlyArray<Use>,
  now: number
) {
  const sql = yield* SqlClient.SqlClient
  const first = written
  written += uses.length
  yield* sql`
    WITH counter AS (
      UPDATE event_sequence SET ledger_last = ledger_last + ${uses.length} RETURNING ledger_last - ${uses.length} AS base
    )
    INSERT INTO usage_ledger (sequence, license_id, feature_id, action, event_id, amount, balance_after, actor_type, actor_id,
      request_id, occurred_at, credits, overage)
    SELECT base + ordinal, license_id, feature_id, action, event_id, amount, 0, 'license', license_id, 'req_test', occurred_at,
      credits, overage
    FROM counter, unnest(
      ${columns.text(uses.map(({ license, product }) => products[product]!.licenses[license]!))},
      ${columns.text(uses.map(({ feature, product }) => products[product]!.features[feature]!))},
      ${columns.text(uses.map(({ action }) => action))},
      ${columns.text(uses.map(({ action }, index) => (action === "consume" ? `use-${first + index}` : null)))},
      ${columns.int8(uses.map(({ amount }) => amount))},
      ${columns.timestamptz(uses.map(({ age }) => now - age))},
      ${columns.int8(uses.map(({ credits }) => credits ?? null))}, ${columns.int8(uses.map(({ overage }) => overage ?? null))}
    ) WITH ORDINALITY AS used (license_id, feature_id, action, event_id, amount, occurred_at, credits, overage, ordinal)`
})

const plainColumns: { readonly [K in Grouping]: string } = {
  product_id: "l.product_id",
  customer_id: "l.customer_id",
  license_id: "u.license_id",
  order_id: "l.order_id",
  subscription_id: "l.subscription_id",
  feature_code: "f.code"
}

/** The rows of a summary, computed from the ledger only. */
const plainRows = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { bucket, feature_code, from, group_by, product_id, to, tz = "UTC" }: Asked
) {
  const keys = (group_by ?? ["feature_code"]).map((field) => `${plainColumns[field]} AS ${field}`)
  const start =
    bucket === undefined
      ? []
      : [`date_trunc('${bucket === "1h" ? "hour" : "day"}', occurred_at, '${tz}') AS bucket_start`]
  const places = [...start, ...keys].map((_, index) => index + 1).join(", ")
  const sum = (action: string, what = "amount") =>
    `coalesce(sum(${what}) FILTER (WHERE action = '${action}'), 0)::bigint`
  const rows = yield* sql<{ readonly [field: string]: unknown }>`
    SELECT ${sql.literal([...start, ...keys].join(", "))}, ${sql.literal(sum("consume"))} AS consumed,
      count(*) FILTER (WHERE action = 'consume') AS consumptions,
      ${sql.literal(sum("reverse", "-amount"))} AS reversed,
      ${sql.literal(`${sum("reset")} + ${sum("period_reset")}`)} AS reset,
      ${sql.literal(`${sum("consume", "-credits")} + ${sum("reverse", "-credits")}`)} AS credits_used,
      coalesce(sum(overage), 0)::bigint AS overage,
      ${sql.literal(sum("top_up"))} AS topped_up, count(DISTINCT license_id) AS licenses
    FROM usage_ledger u JOIN licenses l ON l.id = u.license_id LEFT JOIN features f ON f.id = u.feature_id
    WHERE occurred_at >= ${instant(from)} AND ${to === undefined ? sql`TRUE` : sql`occurred_at < ${instant(to)}`}
      AND ${product_id === undefined ? sql`TRUE` : sql`l.product_id = ${product_id}`}
      AND ${feature_code === undefined ? sql`TRUE` : sql`f.code = ${feature_code}`}
    GROUP BY ${sql.literal(places)} ORDER BY ${sql.literal(places)}`
  return rows.map((row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)))
})

export type Asked = Omit<UsageSummaryFilter, "customer_id" | "license_id" | "order_id" | "subscription_id"> & {
  readonly from: number
}

/** A node's connections for reports. */
export const makeReports = Effect.map(
  Layer.build(Layer.fresh(ReportsDatabase.layer.pipe(Layer.provide(Settings.layerTest({}))))),
  (context) => Context.get(context, ReportsDatabase)
)

/** A summary, and its expected rows, in the same snapshot. */
export const bothRows = ({ snapshot, sql }: ReportsDatabase["Service"], asked: Asked) =>
  snapshot(
    Effect.all([Effect.map(usageSummary(sql, asked, asked.from, 10_000), ({ rows }) => rows), plainRows(sql, asked)])
  )

const mostly = <A>(usual: A, ...others: ReadonlyArray<A>) => fc.constantFrom(usual, usual, usual, ...others)

const use: fc.Arbitrary<Use> = fc.record({
  product: fc.constantFrom(0, 1),
  license: fc.constantFrom(0, 1, 2),
  feature: fc.constantFrom(0, 1, 2),
  action: mostly<Use["action"]>("consume", "reverse", "reset", "period_reset", "top_up", "set_limit"),
  amount: fc.integer({ min: 1, max: 1_000 }),
  credits: fc.option(fc.integer({ min: -50, max: 50 }), { nil: undefined }),
  overage: fc.option(fc.integer({ min: -50, max: 50 }), { nil: undefined }),
  // On time, late by minutes to days, or from a clock that runs ahead.
  age: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: day }),
    fc.integer({ min: 0, max: 5 * day }),
    fc.integer({ min: -day, max: 0 })
  )
})

const question = fc.record(
  {
    group_by: mostly<ReadonlyArray<Grouping>>(
      ["feature_code"],
      ["product_id"],
      ["product_id", "feature_code"],
      ["feature_code", "product_id"],
      ["license_id", "feature_code"],
      ["customer_id", "product_id"]
    ),
    bucket: fc.constantFrom("1h", "1d", "1d"),
    tz: mostly("UTC", "UTC", "Europe/Zurich"),
    product: fc.constantFrom(0, 1),
    feature_code: fc.constantFrom("export", "render"),
    /** The period, in milliseconds before now. */
    from: fc.integer({ min: day, max: 8 * day }),
    length: fc.integer({ min: hour, max: 8 * day }),
    whole: fc.boolean()
  },
  { requiredKeys: ["from", "whole"] }
)
export type Question = typeof question extends fc.Arbitrary<infer A> ? A : never

const feature = { product: fc.constantFrom(0, 1), feature: fc.constantFrom(0, 1, 2) } as const

/**
 * The steps of a history: rows are added, time passes, a worker does part of its work, features are deleted or take
 * another's code, a client asks.
 */
export const history = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ uses: fc.array(use, { minLength: 1, maxLength: 12 }) }) },
    { weight: 4, arbitrary: fc.record({ hours: fc.integer({ min: 1, max: 30 }) }) },
    { weight: 5, arbitrary: fc.record({ steps: fc.integer({ min: 1, max: 12 }) }) },
    { weight: 5, arbitrary: fc.record({ question }) },
    { weight: 1, arbitrary: fc.record({ deleted: fc.record(feature) }) },
    { weight: 1, arbitrary: fc.record({ renamed: fc.record({ ...feature, code: fc.constantFrom("export", "zoom") }) }) }
  ),
  { minLength: 40, maxLength: 60 }
)
export type Happening = (typeof history extends fc.Arbitrary<infer A> ? A : never)[number]
