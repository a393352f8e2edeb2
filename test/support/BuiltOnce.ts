/** What several test files need built from the sources: built by the first that asks, and kept in node_modules/.cache. */
import { execFile, execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import { openSession } from "../../src/postgres/Postgres.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const home = join(root, "node_modules/.cache/tests")
const staleMillis = 86_400_000

/** Changes with the path or content of any of these files, and with the packages. */
const digestOf = (sources: ReadonlyArray<string>): string => {
  const paths = ["package.json", "package-lock.json", ...sources]
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard", ...paths], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 2 ** 26
  })
  const hash = createHash("sha256")
  for (const path of [...new Set(listed.split("\0"))].sort()) {
    if (path === "" || !existsSync(join(root, path))) continue
    const content = readFileSync(join(root, path))
    hash.update(`${path} ${content.length}\n`).update(content)
  }
  return hash.digest("hex").slice(0, 16)
}

/** Earlier builds, which no running test uses. */
const removeStale = (name: string): void => {
  for (const other of readdirSync(home)) {
    const path = join(home, other)
    if (other.startsWith(`${name}-`) && Date.now() - statSync(path).mtimeMs > staleMillis)
      rmSync(path, { recursive: true, force: true })
  }
}

/** The folder that `build` fills from the sources, which are paths as git takes them. */
export const builtOnce = (
  name: string,
  sources: ReadonlyArray<string>,
  build: (folder: string) => Effect.Effect<unknown, Error>
): Effect.Effect<string> =>
  Effect.gen(function* () {
    const folder = join(home, `${name}-${digestOf(sources)}`)
    // The others wait; the lock ends with its process.
    const session = yield* openSession(Redacted.make(inject("database").url))
    yield* session.values("SELECT pg_advisory_lock(hashtextextended($1, 0))", [folder])
    if (existsSync(folder)) return folder
    mkdirSync(home, { recursive: true })
    removeStale(name)
    const partial = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(`${folder}.`)),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    )
    yield* build(partial)
    // Another run of the same checkout has another server, and perhaps the same build.
    if (!existsSync(folder)) renameSync(partial, folder)
    return folder
  }).pipe(Effect.scoped, Effect.orDie)

/** Runs a program in a folder; fails with its output. */
export const run = (folder: string, program: string, args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
  Effect.callback<string, Error>((resume) => {
    const options = { cwd: folder, env: { ...process.env, ...env }, maxBuffer: 2 ** 26 }
    execFile(program, args, options, (failure, out, error) => {
      resume(failure === null ? Effect.succeed(out) : Effect.fail(new Error(`${failure.message}\n${out}\n${error}`)))
    })
  })
