/** Checks the master key and the encrypted secrets. It creates no key, unlike a start. */
import { Effect, Option } from "effect"
import { Settings } from "../../platform/config/Config.ts"
import { masterKeyPath } from "../../platform/Foundation.ts"
import { keyIdOf, MasterKey } from "../../platform/signing/MasterKey.ts"
import { type SealedColumn, sealedColumns } from "../../platform/signing/SealedColumns.ts"
import { type Finding, findingsOf, messageOf } from "./Check.ts"
import type { Database, Row } from "./Database.ts"

export const masterKeyLayer = ({ dataDir, masterKey, masterKeyNext }: Settings["Service"]) =>
  masterKey === undefined
    ? MasterKey.layerFromFile(masterKeyPath(dataDir), { mayCreate: false, next: masterKeyNext })
    : MasterKey.layerFromKey(masterKey, masterKeyNext)

interface Sealed {
  readonly id: string
  readonly sealed: string
  readonly count: number
}

/** In tables that may be very large, only the newest rows are checked. */
const newestMax = 1_000

/** One value per column and key is enough: the key that decrypts it also decrypts the others. */
const samplesOf = ({ rows }: Database, { column, id, newestBy, table, where }: SealedColumn) => {
  const from =
    newestBy === undefined
      ? table
      : `(SELECT * FROM ${table} WHERE ${newestBy} IS NOT NULL ORDER BY ${newestBy} DESC LIMIT ${newestMax}) AS newest`
  return rows<Sealed & Row>(`
    SELECT replace(sample.id::text, '\\x', '') AS id, encode(sample.sealed, 'base64') AS sealed, sample.count FROM (
      SELECT DISTINCT ON (substr(${column}, 1, 5)) ${id} AS id, ${column} AS sealed,
        count(*) OVER (PARTITION BY substr(${column}, 1, 5)) AS count
      FROM ${from} WHERE length(${column}) > 0 AND ${where ?? "TRUE"}) AS sample`)
}

export const checkMasterKey = Effect.fnUntraced(function* (database: Database) {
  const { fail, ok, warn } = findingsOf("master key")
  const { masterKeyNext } = yield* Settings
  const masterKey = yield* MasterKey
  const keyIds = new Map<string, number>()
  const failures: Array<Finding> = []
  for (const column of sealedColumns) {
    for (const { count, id, sealed } of yield* samplesOf(database, column)) {
      const bytes = new Uint8Array(Buffer.from(sealed, "base64"))
      const keyId = Option.getOrElse(keyIdOf(bytes), () => "of a newer version")
      keyIds.set(keyId, (keyIds.get(keyId) ?? 0) + count)
      const opened = yield* Effect.result(masterKey.open(bytes, `${column.table}/${id}`))
      if (opened._tag === "Success") continue
      failures.push(
        ...fail(
          `${count} values of ${column.table}.${column.column} do not open: ${messageOf(opened.failure)}`,
          "Start the service with the key that encrypted them; docs/OPERATIONS.md says what to do if it is lost."
        )
      )
    }
  }
  if (failures.length > 0) return failures
  const found = `${[...keyIds.values()].reduce((sum, count) => sum + count, 0)} stored secrets open with it`
  if (keyIds.size > 1) {
    return warn(
      `Secrets are encrypted with ${keyIds.size} keys: a rotation is not complete`,
      "Run `master-key rotate` again."
    )
  }
  if (masterKeyNext !== undefined) {
    return warn(
      `${found}, and LICENSING_MASTER_KEY_NEXT is set`,
      "Rotate with `master-key rotate`; afterwards make the next key LICENSING_MASTER_KEY and unset the other."
    )
  }
  return ok(found)
})

export const checkSigningKey = Effect.fnUntraced(function* ({ row }: Database) {
  const { ok, warn } = findingsOf("signing keys")
  const { active, kid, retired } = yield* row<{ active: number; kid: string | null; retired: number }>(`
    SELECT count(*) FILTER (WHERE status = 'active') AS active, max(kid) FILTER (WHERE status = 'active') AS kid,
      count(*) FILTER (WHERE status = 'retired') AS retired FROM signing_keys`)
  if (active === 0) return warn("There is none yet", "The next start of a node creates the first one.")
  return ok(`${kid} signs; ${retired} retired keys stay published`)
})
