/** Decides and writes new licenses, with the same number of statements for one or a thousand. */
import { Clock, Effect, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient, type SqlError } from "effect/sql"
import type { Code } from "../../contract/api/ErrorCode.ts"
import { type Refusal, refuse, refuseErasing } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import { mayCompute } from "../../platform/postgres/driver/Transactions.ts"
import { isConcurrentChange } from "../../platform/postgres/queries/Sql.ts"
import { type NewLicense, type NewLicenseInput, newLicense } from "../changes/NewLicense.ts"
import * as LicenseKey from "../model/LicenseKey.ts"
import type { PolicyRecord } from "../model/LicenseRecords.ts"
import { writeAssignments } from "../rows/AssignmentRows.ts"
import { insertLicenses } from "../rows/LicenseTable.ts"
import type { Refused } from "../rules/LicenseCommand.ts"
import { readNamedRecords } from "./NamedRecords.ts"
import { requireAnnounced } from "./VendorKeys.ts"

export type DraftRefusal = Refusal<
  | "NOT_FOUND"
  | "CONFLICT"
  | "LINKAGE_MISMATCH"
  | "VALIDATION_ERROR"
  | "EXPIRY_NOT_IN_FUTURE"
  | "DUPLICATE_LICENSE_KEY"
  | "NOT_READY"
>

/** An accepted license that is not yet written. */
export interface Draft extends NewLicense {
  readonly policy: PolicyRecord
  readonly license_key: LicenseKey.LicenseKey
}

/** Features of all licenses of a request. Limits how long the event counter is locked. */
const featuresMax = 50_000

/** The path of a field of the license at this index in the request's body. */
export type PathOf = (index: number, field: string) => string

/**
 * `draft` reads and decides; it writes nothing, and locks the records that the licenses name until the transaction ends. `write`
 * writes licenses with their features, but not their events. Both run within the caller's transaction.
 */
export const makeDrafts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Identifiers
  const random = yield* SecureRandom.SecureRandom
  const generateKey = Effect.provideService(LicenseKey.generate, SecureRandom.SecureRandom, random)

  const draft = Effect.fnUntraced(function* (
    inputs: ReadonlyArray<NewLicenseInput>,
    pathOf: PathOf
  ): Effect.fn.Return<ReadonlyArray<Draft>, DraftRefusal | SqlError.SqlError> {
    const named = yield* readNamedRecords(sql, inputs)
    const now = yield* Clock.currentTimeMillis
    const drafts: Array<Draft> = []
    const hashes = new Set<string>()
    let features = 0
    for (const [index, input] of inputs.entries()) {
      // A thousand licenses take a tenth of a second of CPU time before the events are appended.
      if (index === 1) yield* sql`SELECT ${mayCompute(sql)}`
      const license_key = yield* keyOf(input, generateKey, pathOf(index, "license_key"))
      const key = LicenseKey.stored(license_key)
      if (hashes.has(key.key_hash)) return yield* duplicateKey(pathOf(index, "license_key"))
      hashes.add(key.key_hash)
      const basis = named.of(input)
      if ("accepted" in basis) return yield* refusalAt(basis, pathOf, index)
      const decided = newLicense(input, { ...basis, id: yield* ids.make("license"), key }, now)
      if (!decided.accepted) return yield* refusalAt(decided, pathOf, index)
      features += decided.assignments.length
      if (features > featuresMax) return yield* tooManyFeatures(pathOf(index, "features"))
      drafts.push({ ...decided, policy: basis.target.policy, license_key })
    }
    return drafts
  })

  const write = Effect.fnUntraced(function* (drafts: ReadonlyArray<Draft>, pathOf: PathOf) {
    if (drafts.some(({ license_key }) => LicenseKey.isVendorKey(license_key))) yield* requireAnnounced(sql)
    const written = yield* insertLicenses(
      sql,
      drafts.map(({ license }) => license)
    ).pipe(Effect.catchIf(isConcurrentChange, () => Effect.fail(customerIsErased(drafts, pathOf))))
    const index = drafts.findIndex(({ license }) => !written.has(license.id))
    if (index >= 0) return yield* duplicateKey(pathOf(index, "license_key"))
    const assignments = drafts.flatMap(({ assignments, license }) =>
      assignments.map((assignment) => ({ ...assignment, license_id: license.id }))
    )
    if (assignments.length > 0) yield* writeAssignments(sql, assignments)
  })

  return { draft, write }
})

const refusalAt = <C extends Code>({ code, detail, message }: Refused<C>, pathOf: PathOf, index: number) =>
  refuse(code, message, detail === undefined ? undefined : pathOf(index, detail))

const keyOf = Effect.fnUntraced(function* (
  { license_key }: NewLicenseInput,
  generate: Effect.Effect<LicenseKey.LicenseKey>,
  path: string
) {
  if (license_key === undefined) return yield* generate
  const given = LicenseKey.read(license_key)
  return Option.isSome(given) ? given.value : yield* mistypedKey(path)
})

const mistypedKey = (path: string) =>
  refuse(
    "VALIDATION_ERROR",
    "The key has the form of this service's generated keys, but its check characters are wrong: correct it or choose another one.",
    path
  )

const tooManyFeatures = (path: string) =>
  refuse(
    "VALIDATION_ERROR",
    `The licenses have more than ${featuresMax} features together: send fewer licenses in a request.`,
    path
  )

/** The database does not tell which customer it is, so the refusal names the first one of the request. */
const customerIsErased = (drafts: ReadonlyArray<Draft>, pathOf: PathOf) => {
  const index = drafts.findIndex(({ license }) => license.customer_id !== undefined)
  return refuseErasing(pathOf(index, "customer_id"))
}

const duplicateKey = (path: string) =>
  refuse("DUPLICATE_LICENSE_KEY", "Another license has this key: choose a different one.", path)
