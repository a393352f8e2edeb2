/** Random rows of a filled database, which the requests use. */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import * as LicenseKey from "../../../src/licensing/model/LicenseKey.ts"
import type { Session } from "./scaleRows.ts"

type Row = Readonly<Record<string, string>>

export interface Sample {
  /** Licenses in use, with the fingerprint of a device and their `key`. */
  readonly licenses: ReadonlyArray<Row>
  readonly orders: ReadonlyArray<Row>
  readonly customers: ReadonlyArray<Row>
  /** Features of licenses. */
  readonly features: ReadonlyArray<Row>
  readonly jobs: ReadonlyArray<Row>
}

/** Rows drawn of each kind: so many that a round rarely uses one twice. */
const drawnMax = 2_000

/** Draws rows, and gives the licenses known keys. */
export const takeSample = Effect.fnUntraced(function* ({ values }: Session) {
  const draw = (columns: ReadonlyArray<string>, from: string) =>
    Effect.map(
      values(`SELECT ${columns.join(", ")} FROM ${from} ORDER BY md5(t.id) LIMIT ${drawnMax}`),
      (rows): ReadonlyArray<Row> =>
        rows.map((row) => Object.fromEntries(columns.map((column, index) => [column.slice(2), String(row[index])])))
    )
  const drawn = yield* draw(
    [
      "t.id",
      "t.product_id",
      "t.policy_id",
      "t.customer_email",
      "t.customer_name",
      "t.license_key_last4",
      "d.fingerprint"
    ],
    `licenses t JOIN devices d ON d.license_id = t.id AND d.binding_key LIKE '%-0' WHERE t.status = 'active'`
  )
  const licenses = drawn.map((row) => ({ ...row, key: keyOf(row["id"]!) }))
  for (const { id, key } of licenses as ReadonlyArray<Row>) {
    const hash = createHash("sha256").update(key!).digest("hex")
    yield* values(`UPDATE licenses SET key_hash = '\\x${hash}' WHERE id = '${id}'`)
  }
  const orders = yield* draw(["t.id", "t.external_id", "t.subscription_id", "t.customer_id"], "orders t")
  const customers = yield* draw(["t.id", "t.code", "t.email"], "customers t")
  const features = yield* draw(
    ["t.id"],
    "features t WHERE EXISTS (SELECT FROM license_features WHERE feature_id = t.id)"
  )
  const jobs = yield* draw(["t.id"], "bulk_jobs t")
  return { licenses, orders, customers, features, jobs } satisfies Sample as Sample
})

/** The key of a license, which is stored only here. */
const keyOf = (id: string): string => LicenseKey.fromBytes(createHash("sha256").update(id).digest().subarray(0, 28))
