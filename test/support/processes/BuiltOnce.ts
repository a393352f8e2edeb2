/** What several test files need built from the sources: built by the first that asks, and kept in node_modules/.cache. */
import { execFile, execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync
} from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { Effect, Exit } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"

const checkout = fileURLToPath(new URL("../../../", import.meta.url))
const staleMillis = 86_400_000
const lockPauseMillis = 100

/** Changes with the path or content of any of these files, with the packages, and with Node. */
const digestOf = (root: string, sources: ReadonlyArray<string>): string => {
  const paths = ["package.json", "package-lock.json", "tsconfig.json", ...sources]
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard", ...paths], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 2 ** 26
  })
  const hash = createHash("sha256").update(process.version)
  for (const path of [...new Set(listed.split("\0"))].sort()) {
    if (path === "" || !existsSync(join(root, path))) continue
    const content = readFileSync(join(root, path))
    hash.update(`${path} ${content.length}\n`).update(content)
  }
  return hash.digest("hex").slice(0, 16)
}

/** Builds that no test has used for a day. */
const removeStale = (home: string, name: string): void => {
  for (const other of readdirSync(home)) {
    const path = join(home, other)
    if (other.startsWith(`${name}-`) && Date.now() - statSync(path).mtimeMs > staleMillis)
      rmSync(path, { recursive: true, force: true })
  }
}

/** A lock of the file system, which ends with its process: other runs of the checkout have other database servers. */
const lock = (path: string) =>
  Effect.gen(function* () {
    const file = yield* Effect.acquireRelease(
      Effect.sync(() => new DatabaseSync(path, { timeout: 0 })),
      (opened) => Effect.sync(() => opened.close())
    )
    const isTaken = Effect.sync(() => {
      try {
        file.exec("BEGIN EXCLUSIVE")
        return true
      } catch {
        return false
      }
    })
    while (!(yield* isTaken)) yield* pauseFor(lockPauseMillis)
  })

type Build = (folder: string) => Effect.Effect<unknown, Error>

/** The builds of a checkout, which are kept in `home`. */
export const buildsOf =
  (root: string, home: string) =>
  (name: string, sources: ReadonlyArray<string>, build: Build): Effect.Effect<string> =>
    Effect.gen(function* () {
      mkdirSync(home, { recursive: true })
      yield* lock(join(home, `${name}.lock`))
      const folder = join(home, `${name}-${digestOf(root, sources)}`)
      if (existsSync(folder)) {
        utimesSync(folder, new Date(), new Date())
        return folder
      }
      removeStale(home, name)
      const partial = mkdtempSync(`${folder}.`)
      yield* Effect.onExit(build(partial), (exit) =>
        Effect.sync(() => Exit.isFailure(exit) && rmSync(partial, { recursive: true, force: true }))
      )
      // Of sources that changed meanwhile: nobody else uses it.
      if (folder !== join(home, `${name}-${digestOf(root, sources)}`)) return partial
      renameSync(partial, folder)
      return folder
    }).pipe(Effect.scoped, Effect.orDie)

/** The folder that `build` fills from the sources, which are paths as git takes them. */
export const builtOnce = buildsOf(checkout, join(checkout, "node_modules/.cache/tests"))

/** Runs a program in a folder; fails with its output. */
export const run = (folder: string, program: string, args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
  Effect.callback<string, Error>((resume) => {
    const options = { cwd: folder, env: { ...process.env, ...env }, maxBuffer: 2 ** 26 }
    execFile(program, args, options, (failure, out, error) => {
      resume(failure === null ? Effect.succeed(out) : Effect.fail(new Error(`${failure.message}\n${out}\n${error}`)))
    })
  })
