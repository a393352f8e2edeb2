/** The packages have the same bytes when the same sources are packed again. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { archiveName, pack, packed } from "../../support/processes/Packed.ts"

it.live(
  "Two packs of the same sources have the same bytes",
  () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-pack-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
      )
      yield* pack(folder)
      for (const name of ["kit", "client", "service"] as const) {
        const first = readFileSync(join(yield* packed(name), archiveName(name)))
        assert.isTrue(readFileSync(join(folder, archiveName(name))).equals(first), name)
      }
    }).pipe(Effect.scoped),
  20 * 60_000
)
