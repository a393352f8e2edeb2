/** The package has the same bytes when the same sources are packed again. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { run } from "../support/processes/BuiltOnce.ts"
import { packed } from "../support/processes/Packed.ts"

it.live(
  "Two packs of the same sources have the same bytes",
  () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-pack-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
      )
      const first = readFileSync(join(yield* packed, "package.tgz"))
      yield* run(fileURLToPath(new URL("../../", import.meta.url)), "npm", ["pack", "--pack-destination", folder])
      const [again = assert.fail("nothing was packed")] = readdirSync(folder)
      assert.isTrue(readFileSync(join(folder, again)).equals(first))
    }).pipe(Effect.scoped),
  20 * 60_000
)
