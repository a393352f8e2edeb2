/** Files that an export writes. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { writeLines } from "../../../src/tools/transfer/Files.ts"

it.effect("A file that is not written to its end leaves nothing, however it ends", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const folder = yield* files.makeTempDirectoryScoped()
    const path = `${folder}/export.jsonl`
    for (const end of [Effect.fail("refused"), Effect.die("a defect"), Effect.interrupt]) {
      yield* Effect.exit(writeLines(path, (emit) => Effect.andThen(emit(["personal data"]), end)))
      assert.deepStrictEqual(yield* files.readDirectory(folder), [])
    }
    yield* writeLines(path, (emit) => emit(["one", "two"]))
    assert.strictEqual(yield* files.readFileString(path), "one\ntwo\n")
    assert.deepStrictEqual(yield* files.readDirectory(folder), ["export.jsonl"])
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.effect("Two exports never write the same file", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const folder = yield* files.makeTempDirectoryScoped()
    const path = `${folder}/export.jsonl`
    const second = writeLines(path, (emit) => emit(["of the second"]))
    yield* writeLines(path, (emit) =>
      Effect.gen(function* () {
        yield* emit(["one"])
        const { message } = yield* Effect.flip(second)
        assert.match(
          message,
          /\.partial exists: another export is writing it, or was killed\. If none runs, remove it\.$/
        )
        yield* emit(["two"])
      })
    )
    assert.strictEqual(yield* files.readFileString(path), "one\ntwo\n")
    assert.deepStrictEqual(yield* files.readDirectory(folder), ["export.jsonl"])
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)
