/** What an application pays for the kit. */
import { gzipSync } from "node:zlib"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { bundle } from "./TrialHost.ts"

it.effect("The application kit is at most 10 kB compressed, in one file that imports nothing", () =>
  Effect.gen(function* () {
    const [chunk, ...others] = yield* bundle("src/clients/kit/LicenseKit.ts", true)
    assert.isEmpty(others)
    assert.isEmpty([...chunk.imports, ...chunk.dynamicImports])
    assert.notMatch(chunk.code, /\b(process|Buffer|require|window|document|localStorage)\b/)
    assert.isAtMost(gzipSync(chunk.code).length, 10_240)
  })
)
