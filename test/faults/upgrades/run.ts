/**
 * Upgrades a database from every earlier version of the schema in this repository's history. The earlier program makes records of
 * each kind and is asked for all of them; it stays, while the migrations are applied by sessions that are ended at every change of
 * the schema; then this program is asked for the same records, and both count a consumption.
 *
 *   npm run upgrades -- [--from 0001] [--only 0033]
 *
 * Exits with 1 if an answer lacks what it had before, or a consumption is counted twice. --record writes the first version's database
 * to the file that the test of the upgrade reads.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer, Redacted, References } from "effect"
import { Command, Flag } from "effect/cli"
import { SecureRandom } from "effect/crypto"
import { startService } from "../../../infra/scripts/service.ts"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { prepare } from "../../../src/platform/postgres/embedded/DatabaseFolder.ts"
import { serverFolder } from "../../support/database/DatabaseServer.ts"
import { execute, makePostgresServer } from "../installation/PostgresServer.ts"
import { record, settingsFor, token } from "./Fixture.ts"
import { everyChange, migrateKilled } from "./Killing.ts"
import { makeLaterRecords } from "./LaterRecords.ts"
import { ask, lacking, makeRecords, readRecords, type Service } from "./Records.ts"
import { checkOut, type Version, versions } from "./Versions.ts"

const flags = {
  from: Flag.String("from").pipe(Flag.withDescription("The first migration to begin with."), Flag.withDefault("")),
  only: Flag.String("only").pipe(Flag.withDescription("One migration."), Flag.withDefault("")),
  record: Flag.Boolean("record").pipe(
    Flag.withDescription("Write the test's file."),
    Flag.withDefault(false),
    Flag.withoutNegation
  )
}

const started = (folder: string | undefined, url: Redacted.Redacted<string>, log: string) =>
  Effect.acquireRelease(
    Effect.promise(() => startService({ ...(folder && { folder }), settings: settingsFor(url), log })),
    (running) => Effect.promise(() => running.stop())
  ).pipe(Effect.map(({ base }): Service => ({ base, token })))

/** The same consumption at both nodes counts once. */
const consumeAt = (service: Service, licenseKey: string, event_id: string) => {
  const body = { fingerprint: "first", feature_code: "export", event_id, amount: 1 }
  return Effect.promise(() => ask(service, "POST", "/license/consume", body, `License ${licenseKey}`))
}

/** By the records, and one event id that both nodes count. */
const consumedMax = 16

const upgradeFrom = Effect.fnUntraced(function* (
  server: Redacted.Redacted<string>,
  version: Version,
  recording: boolean
) {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-upgrade-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const database = `upgraded_${version.commit.slice(0, 8)}`
  yield* execute(server, `CREATE DATABASE ${database}`)
  const address = new URL(Redacted.value(server))
  address.pathname = database
  const url = Redacted.make(address.href)
  const checkout = join(folder, "checkout")
  yield* Effect.sync(() => checkOut(version.commit, checkout))
  const old = yield* started(checkout, url, join(folder, "old.log"))
  const licenseKey = yield* Effect.promise(() => makeRecords(old))
  const later = yield* Effect.promise(() => makeLaterRecords(old))
  const before = yield* Effect.promise(() => readRecords(old))
  if (recording) {
    yield* record(url, before)
    return { kills: 0, later, faults: [] }
  }
  const kills = yield* migrateKilled(url, everyChange)
  const next = yield* started(undefined, url, join(folder, "new.log"))
  const [atOld, atNew] = [yield* Effect.promise(() => readRecords(old)), yield* Effect.promise(() => readRecords(next))]
  const uses = [
    yield* consumeAt(old, licenseKey, "both"),
    yield* consumeAt(next, licenseKey, "both"),
    yield* consumeAt(next, licenseKey, "use-1")
  ]
  const [row] = yield* Effect.scoped(
    Effect.flatMap(openSession(url), ({ values }) =>
      values("SELECT max(total_consumptions)::int FROM license_features")
    )
  )
  return {
    kills,
    later,
    faults: [
      ...lacking(before, atNew, "this version"),
      ...lacking(before, atOld, "the earlier version, afterwards"),
      ...uses.flatMap(({ json, status }, index) =>
        status === 200 ? [] : [`consumption ${index} answered ${status}: ${JSON.stringify(json)}`]
      ),
      ...(row?.[0] === consumedMax ? [] : [`the license has consumed ${row?.[0]} of ${consumedMax}`])
    ]
  }
}, Effect.scoped)

const run = Effect.fnUntraced(
  function* ({ from, only, record: recording }: Command.Command.Config.Infer<typeof flags>) {
    const folder = yield* prepare(yield* serverFolder)
    const { url } = yield* makePostgresServer(folder, folder.cluster)
    const chosen = versions().filter(({ name }) => name >= from && name.startsWith(only))
    for (const version of recording ? chosen.slice(0, 1) : chosen) {
      const { commit, name, refused } = version
      if (refused !== undefined) {
        yield* Console.log(`${name} (${commit.slice(0, 8)}): skipped: ${refused}`)
        continue
      }
      const { faults, kills, later } = yield* upgradeFrom(url, version, recording)
      const kinds = `${later.length} later kinds of records`
      yield* Console.log(`${name} (${commit.slice(0, 8)}): ${kinds}, ended ${kills} times, ${faults.length} faults`)
      for (const fault of faults) yield* Console.log(`  ${fault.slice(0, 600)}`)
      if (faults.length > 0) yield* Effect.sync(() => (process.exitCode = 1))
    }
  },
  Effect.scoped,
  Effect.provide(Layer.merge(NodeFileSystem.layer, SecureRandom.layerWebCrypto)),
  Effect.provideService(References.MinimumLogLevel, "Error")
)

Command.make("upgrades", flags, run).pipe(
  Command.withDescription("Upgrade a database from every earlier version of the schema."),
  Command.run({ version: "1" }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
