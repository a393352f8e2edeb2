/** A build is made once for the same sources, and never kept for others. */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { buildsOf } from "./BuiltOnce.ts"

/** A checkout with one source, and a build that copies it and counts. */
const makeCheckout = Effect.gen(function* () {
  const root = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-builds-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const home = join(root, "builds")
  execFileSync("git", ["init", "--quiet"], { cwd: root })
  mkdirSync(join(root, "src"))
  const write = (text: string) => writeFileSync(join(root, "src/source"), text)
  write("first")
  let builds = 0
  const buildThen = (after: Effect.Effect<unknown, Error>) =>
    buildsOf(root, home)("copy", ["src"], (folder) => {
      builds++
      writeFileSync(join(folder, "built"), readFileSync(join(root, "src/source")))
      return after
    })
  const contentOf = (folder: string) => readFileSync(join(folder, "built"), "utf8")
  return { home, write, buildThen, contentOf, builds: () => builds }
})

it.live("Sources are built once, also if several tests ask at the same time", () =>
  Effect.gen(function* () {
    const { builds, buildThen, contentOf } = yield* makeCheckout
    const folders = yield* Effect.replicateEffect(buildThen(Effect.yieldNow), 3, { concurrency: "unbounded" })
    assert.deepStrictEqual(
      folders.map(contentOf),
      folders.map(() => "first")
    )
    assert.deepStrictEqual([new Set(folders).size, builds()], [1, 1])
  })
)

it.live("A build whose sources change meanwhile, or that fails, is not kept", () =>
  Effect.gen(function* () {
    const { builds, buildThen, contentOf, home, write } = yield* makeCheckout
    const changed = yield* buildThen(Effect.sync(() => write("second")))
    assert.strictEqual(contentOf(changed), "first")
    write("first")
    assert.isTrue(Exit.isFailure(yield* Effect.exit(buildThen(Effect.fail(new Error("fails"))))))
    const again = yield* buildThen(Effect.void)
    assert.notStrictEqual(again, changed)
    assert.deepStrictEqual([contentOf(again), builds()], ["first", 3])
    assert.lengthOf(
      readdirSync(home).filter((name) => name.startsWith("copy-")),
      2
    )
  })
)

it.live("A build is removed when it was not used for a day", () =>
  Effect.gen(function* () {
    const { buildThen, home, write } = yield* makeCheckout
    const long = new Date(Date.now() - 2 * 86_400_000)
    const used = yield* buildThen(Effect.void)
    write("second")
    const unused = yield* buildThen(Effect.void)
    for (const folder of [used, unused]) utimesSync(folder, long, long)
    write("first")
    assert.strictEqual(yield* buildThen(Effect.void), used)
    assert.isAbove(statSync(used).mtimeMs, long.getTime())
    write("third")
    yield* buildThen(Effect.void)
    const kept = readdirSync(home).map((name) => join(home, name))
    assert.include(kept, used)
    assert.notInclude(kept, unused)
  })
)
