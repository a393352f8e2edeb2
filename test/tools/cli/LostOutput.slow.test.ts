/** A command whose result is lost has not done what it was called for. */
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { processEnvironment } from "../../support/processes/Processes.ts"
import { program } from "../../support/processes/Program.ts"

/** Runs `licensing openapi` with its output redirected by the shell. */
const openapi = Effect.fnUntraced(function* (redirected: string) {
  const main = yield* program
  return yield* Effect.callback<readonly [code: number | null, error: string]>((resume) => {
    const child = spawn(
      "/bin/bash",
      ["-o", "pipefail", "-c", `"$0" "$1" openapi ${redirected}`, process.execPath, main],
      {
        env: processEnvironment,
        stdio: ["ignore", "ignore", "pipe"]
      }
    )
    let error = ""
    child.stderr.on("data", (chunk) => {
      error += chunk
    })
    child.on("close", (code) => resume(Effect.succeed([code, error])))
  })
})

it.live.skipIf(!existsSync("/dev/full"))(
  "A command fails if the disk of its output is full",
  () =>
    Effect.gen(function* () {
      const [code, error] = yield* openapi("> /dev/full")
      assert.match(error, /^Standard output cannot be written: ENOSPC.*\n$/)
      assert.strictEqual(code, 1)
    }),
  60_000
)

it.live(
  "A command does not fail if the reader of its output has seen enough",
  () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* openapi("| true"), [0, ""])
    }),
  60_000
)
