/** Units for licenses that another system has issued: with the rules of new licenses, but they may have expired. */
import { Effect, Result, Schema, SchemaIssue } from "effect"
import { SqlClient } from "effect/sql"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import { grantedFeature } from "../../licensing/changes/GrantedFeatures.ts"
import { isExpiryRecorded } from "../../licensing/model/FeatureExpiry.ts"
import * as LicenseKey from "../../licensing/model/LicenseKey.ts"
import type { PolicyRecord, TargetPolicy } from "../../licensing/model/LicenseRecords.ts"
import type { LimitName } from "../../licensing/model/Limits.ts"
import { statusAt } from "../../licensing/rules/Lifecycle.ts"
import { refuseTerms, termBeginsAt, termOf } from "../../licensing/rules/Terms.ts"
import { withPeriods } from "../../licensing/rules/UsagePeriods.ts"
import { columns } from "../../platform/postgres/driver/Parameters.ts"
import { heartbeatDueAt } from "../../vendor/policies/Policy.ts"
import { tableOf } from "./Columns.ts"
import type { Row } from "./Lines.ts"
import type { Entry, Unit } from "./Units.ts"

/** A license of another system, with its key. */
export interface GivenLicense extends Readonly<Partial<Record<LimitName, number>>> {
  readonly id: string
  readonly license_key: LicenseKey.LicenseKey
  readonly product_id: string
  readonly policy_id: string
  readonly status: "active" | "suspended" | "revoked"
  readonly customer_id?: string | undefined
  readonly customer_email?: string | undefined
  readonly customer_name?: string | undefined
  readonly starts_at?: number | undefined
  readonly expires_at?: number | undefined
  readonly maintenance_expires_at?: number | undefined
  readonly metadata: object
  readonly created_at: number
  /** When a device was activated first: a term that waits for that has begun then. */
  readonly first_used_at?: number | undefined
}

/** What a license needs of its policy. */
export type GivenPolicy = Pick<TargetPolicy, "features"> & {
  readonly policy: Pick<
    PolicyRecord,
    "license_type" | "duration_days" | "duration_starts" | "grace_period_days" | "validation_interval_minutes"
  >
}

/** A row with instants as text, without the values that are absent. */
export const rowOf = (fields: { readonly [column: string]: unknown }): Row =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([column, value]) =>
      value === undefined
        ? []
        : [
            [
              column,
              typeof value === "number" && /_(at|from|start|anchor)$/.test(column) ? formatTimestamp(value) : value
            ]
          ]
    )
  )

/** When the term of a license begins, with the dates that follow; undefined while it waits for the first use. */
const termFrom = (policy: GivenPolicy["policy"], { first_used_at, ...given }: Omit<GivenLicense, "license_key">) => {
  const dated = { ...given, ...termOf(policy, given, given.created_at) }
  if (dated.term_days === undefined) return { dated, begins: termBeginsAt(dated, given.created_at) }
  if (first_used_at === undefined) return { dated, begins: undefined }
  const term = termOf({ ...policy, duration_starts: "creation" }, given, first_used_at)
  return {
    dated: { ...given, ...term, term_began_at: first_used_at },
    begins: termBeginsAt({ ...given, ...term }, first_used_at)
  }
}

/** The license and the features that come with its policy; or why its policy cannot have such a license. */
export const licenseUnit = (
  line: number,
  { license_key, ...given }: GivenLicense,
  { features, policy }: GivenPolicy,
  now: number
): Unit | string => {
  const { begins, dated } = termFrom(policy, given)
  const refused = refuseTerms(policy.license_type, dated)
  if (refused !== undefined) return `${refused.detail}: ${refused.message}`
  const license = rowOf({
    ...dated,
    // A grace period or expiry that began before the import is no news, so no sweep has to record it.
    status: statusAt(dated, policy, now),
    ...LicenseKey.stored(license_key),
    heartbeat_from: heartbeatDueAt(policy, now),
    updated_at: now
  })
  const assignments = features.map((feature): Entry => {
    const granted = grantedFeature(feature, undefined, begins, now)
    const source = { license: dated, subscription: undefined }
    const { feature_code: _, feature_name: __, ...assignment } = withPeriods(granted, source, now)
    const expiry_recorded = isExpiryRecorded(undefined, assignment, now)
    return {
      line,
      table: tableOf("license_feature"),
      row: rowOf({ license_id: given.id, ...assignment, expiry_recorded })
    }
  })
  return { root: { line, table: tableOf("license"), row: license }, parts: assignments }
}

/** The license that has each of these keys, by the hash of the key. */
export const licensesOfKeys = Effect.fnUntraced(function* (hashes: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  // A join with a list was planned while the table was empty: it compared each license with each hash.
  const found = yield* Effect.orDie(sql<{
    readonly key_hash: string
    readonly id: string
    readonly policy_id: string
  }>`
    SELECT encode(key_hash, 'hex') AS key_hash, id, policy_id FROM licenses
    WHERE key_hash = ANY(${columns.bytea(hashes.map((hash) => Buffer.from(hash, "hex")))})`)
  return new Map(found.map((row) => [row.key_hash, row]))
})

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** Decodes values; a failure is a text that names the field. */
export const decodeFields = <A>(schema: Schema.Codec<A, unknown>) => {
  const decode = Schema.decodeUnknownResult(schema)
  return (value: unknown): Result.Result<A, string> =>
    Result.mapError(decode(value), ({ issue }) => {
      const [first] = issuesOf(issue).issues
      return `${(first?.path ?? []).map(String).join(".")}: ${first?.message ?? "wrong"}`
    })
}
