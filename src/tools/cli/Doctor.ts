/**
 * The command that checks an installation: settings, this machine, the database, keys, workers. It changes nothing, and each check
 * that is not ok says what to do. Exit code 0: all ok; 1: warnings; 2: something must be repaired.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, type Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlError } from "effect/sql"
import { Settings } from "../../platform/config/Config.ts"
import { databaseUrl } from "../../platform/Foundation.ts"
import { remedyOf } from "../../platform/postgres/driver/Remedies.ts"
import { hasDatabase } from "../../platform/postgres/embedded/DatabaseFolder.ts"
import { type Finding, fail, messageOf, orFinding, warn } from "../doctor/Check.ts"
import { type Database, nameOf, openDatabase } from "../doctor/Database.ts"
import {
  checkClock,
  checkConnections,
  checkDurability,
  checkRights,
  checkServer,
  checkTransport
} from "../doctor/DatabaseChecks.ts"
import { checkDataFolder, checkPort } from "../doctor/MachineChecks.ts"
import { checkMail } from "../doctor/MailChecks.ts"
import { checkReplica } from "../doctor/ReplicaChecks.ts"
import { checkRetention } from "../doctor/RetentionChecks.ts"
import { checkMasterKey, checkSigningKey, masterKeyLayer } from "../doctor/SecretChecks.ts"
import { checkClientAddress, checkSettings } from "../doctor/SettingsChecks.ts"
import { checkMigrations, checkRecordedAddresses, checkWork } from "../doctor/WorkChecks.ts"
import { settings } from "./Operator.ts"
import { CommandEnded, print } from "./Output.ts"

export const doctor = Effect.fnUntraced(
  function* ({ json }: { readonly json: boolean }) {
    const findings = yield* checkAll.pipe(
      Effect.provide(settings),
      // Without valid settings nothing else can be asked.
      Effect.catchTag("SettingsRefused", ({ lines }) => Effect.succeed(lines.map(settingFinding)))
    )
    const worst = findings.some(({ status }) => status === "fail") ? 2 : findings.every(isOk) ? 0 : 1
    yield* print(json, { status: (["ok", "warn", "fail"] as const)[worst], checks: findings }, findings.map(lineOf))
    if (worst > 0) return yield* new CommandEnded({ exitCode: worst === 1 ? 1 : 2, message: "" })
  },
  Effect.scoped,
  Effect.provide(NodeServices.layer)
)

const isOk = ({ status }: Finding) => status === "ok"

const lineOf = ({ advice, check, message, status }: Finding) =>
  `${status.padEnd(4)}  ${check.padEnd(14)}  ${message}.${advice === undefined ? "" : ` ${advice}`}`

const settingFinding = (line: string): Finding =>
  fail("settings", line.replace(/\.$/, ""), "docs/SETTINGS.md lists all settings with their values.")

const checkAll = Effect.gen(function* () {
  const here = [
    ...(yield* checkSettings),
    ...(yield* checkClientAddress),
    ...(yield* orFinding("data folder")(checkDataFolder)),
    ...(yield* orFinding("port")(checkPort)),
    ...(yield* checkMail)
  ]
  return [...here, ...(yield* checkDatabase)]
})

/** A finding in place of the database's address, if there is no database to ask. */
const findDatabase = Effect.gen(function* () {
  const given = yield* Settings
  if (given.databaseUrl === undefined && !(yield* hasDatabase(given.dataDir))) {
    return yield* Effect.fail(
      warn(
        "database",
        `There is no database in ${given.dataDir} yet`,
        "`serve` creates it; see that LICENSING_DATA_DIR is right."
      )
    )
  }
  const url = yield* databaseUrl
  return { url, database: yield* openDatabase(url) }
}).pipe(
  Effect.mapError((error) =>
    "check" in error
      ? error
      : fail(
          "database",
          messageOf(error),
          (SqlError.isSqlError(error) && remedyOf(error)?.concat(".")) ||
            "Start the server, or correct LICENSING_DATABASE_URL; see also pg_hba.conf and firewalls."
        )
  )
)

const checkDatabase = findDatabase.pipe(
  Effect.flatMap(({ database, url }) => checkContents(database, url)),
  Effect.catch((finding) => Effect.succeed<ReadonlyArray<Finding>>([finding]))
)

const checkContents = Effect.fnUntraced(function* (database: Database, url: Redacted.Redacted<string>) {
  const server = yield* orFinding("database")(checkServer(database, nameOf(url)))
  const checks = [
    orFinding("connection")(checkTransport(database)),
    orFinding("rights")(checkRights(database)),
    orFinding("connections")(checkConnections(database)),
    orFinding("durability")(checkDurability(database)),
    orFinding("clock")(checkClock(database)),
    orFinding("migrations")(checkMigrations(url)),
    orFinding("replica")(checkReplica(database))
  ]
  const findings = [...server, ...(yield* Effect.all(checks)).flat()]
  // A new database has no tables yet.
  if (!findings.some(({ check, status }) => check === "migrations" && status === "ok")) return findings
  const later = [
    checkSecrets(database),
    orFinding("workers")(checkWork(database)),
    orFinding("retention")(checkRetention(database)),
    orFinding("client address")(checkRecordedAddresses(database))
  ]
  return [...findings, ...(yield* Effect.all(later)).flat()]
})

const checkSecrets = Effect.fnUntraced(function* (database: Database) {
  const given = yield* Settings
  const signing = yield* orFinding("signing keys")(checkSigningKey(database))
  // Before the first start there is no file, and nothing that it would have to open.
  if (given.masterKey === undefined && !signing.every(isOk)) return signing
  const opening = Effect.flatMap(
    Layer.build(Layer.provide(masterKeyLayer(given), SecureRandom.layerWebCrypto)),
    (masterKey) => Effect.provideContext(checkMasterKey(database), masterKey)
  )
  return [...(yield* orFinding("master key")(Effect.scoped(opening))), ...signing]
})
