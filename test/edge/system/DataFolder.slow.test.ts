/** Starts that fail before they have a database: one line says why, and no master key is left behind. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, layer } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { serverAccount } from "../../../src/platform/postgres/embedded/ServerProcess.ts"
import { serverFolder } from "../../support/database/DatabaseServer.ts"
import { runCommand, runCommandAs } from "../../support/processes/Processes.ts"

/** A process takes seconds to start beside others on a busy machine. */
const minute = 90_000

/** A start that must fail with one line, which it gives. Root may write everywhere, so it is made as another user. */
const refusal = Effect.fnUntraced(function* (directory: string) {
  const { code, error, out } = yield* runCommandAs(yield* serverAccount, { LICENSING_DATA_DIR: directory })
  assert.deepStrictEqual([code, out], [1, ""], error)
  assert.match(error, /^[^\n]+\n$/)
  assert.include(error, `The data folder ${directory} (LICENSING_DATA_DIR) cannot be used: `)
  return error
})

layer(NodeFileSystem.layer, { excludeTestServices: true, timeout: minute })("A data folder", (it) => {
  it.effect(
    "that is a file, or below one, stops the start with one line",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const file = `${yield* serverFolder}/file`
        yield* files.writeFileString(file, "")
        assert.include(yield* refusal(file), "not a folder")
        assert.include(yield* refusal(`${file}/data`), "ENOTDIR")
      }).pipe(Effect.scoped),
    minute
  )

  it.effect(
    "that cannot be made or written stops the start with one line",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        // On Linux a file system without folders of one's own, where making a folder and its parents never ends.
        assert.match(yield* refusal("/proc/licensing/data"), /ENOENT|EACCES|EROFS/)
        const folder = yield* serverFolder
        yield* files.chmod(folder, 0o555)
        assert.include(yield* refusal(folder), "EACCES")
        assert.include(yield* refusal(`${folder}/data`), "EACCES")
      }).pipe(Effect.scoped),
    minute
  )

  it.effect(
    "gets no master key from a start whose database fails, and one from the start that works",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const folder = yield* serverFolder
        const font = yield* runCommand({ LICENSING_DATA_DIR: `${folder}/data`, LICENSING_REPORTS_FONT: "/none.ttf" })
        assert.strictEqual(font.code, 1)
        assert.match(font.error, /^LICENSING_REPORTS_FONT must be [^\n]+\n$/)
        const logo = yield* runCommand({ LICENSING_DATA_DIR: `${folder}/data`, LICENSING_PORTAL_LOGO: "/none.svg" })
        assert.strictEqual(logo.code, 1)
        assert.match(logo.error, /^LICENSING_PORTAL_LOGO must be [^\n]+: \/none\.svg cannot\.\n$/)
        assert.isFalse(yield* files.exists(`${folder}/data`))
        // The server cannot write its log.
        yield* files.makeDirectory(`${folder}/postgres.log`)
        const failed = yield* runCommand({ LICENSING_DATA_DIR: folder })
        assert.strictEqual(failed.code, 1)
        assert.match(failed.error, /^The embedded PostgreSQL cannot be started: [^\n]+\n$/)
        assert.isFalse(yield* files.exists(`${folder}/master.key`))
        yield* files.remove(`${folder}/postgres.log`, { recursive: true })
        const created = yield* runCommand({ LICENSING_DATA_DIR: folder }, "tokens", "create", "--name", "first")
        assert.strictEqual(created.code, 0, created.error)
        assert.isTrue(yield* files.exists(`${folder}/master.key`))
      }).pipe(Effect.scoped),
    minute
  )
})
