/** A letter hears of its answer and must not throw: other letters of the round wait behind it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { Identifiers } from "../../src/api/Identifier.ts"
import { RateLimits } from "../../src/auth/rateLimits/RateLimits.ts"
import type { Outcome } from "../../src/http/FastPath.ts"
import { LicenseActors } from "../../src/licenses/engine/LicenseActors.ts"
import type { PendingCommand } from "../../src/licenses/engine/PendingCommand.ts"
import * as LicenseKey from "../../src/licenses/model/LicenseKey.ts"
import { LicenseIdCache } from "../../src/runtime/credentials/LicenseIdCache.ts"
import { makeFastOperations } from "../../src/runtime/FastOperations.ts"
import { Validations } from "../../src/runtime/Validations.ts"
import { Signer } from "../../src/signing/Signer.ts"

const key = LicenseKey.fromBytes(new Uint8Array(28))
const posted: Array<PendingCommand> = []

/** Whatever an answer needs beside its license is broken. */
const Stubs = Layer.mergeAll(
  Layer.succeed(LicenseActors, { post: (_: string, letter: PendingCommand) => void posted.push(letter) } as never),
  Layer.succeed(LicenseIdCache, { cached: () => "lic_1", forget: () => {} } as never),
  Layer.succeed(RateLimits, { runtime: () => undefined } as never),
  Layer.succeed(Signer, { begin: () => {} } as never),
  Layer.succeed(Validations, {
    count: () => {
      throw new Error("boom")
    }
  } as never),
  Identifiers.layer.pipe(Layer.provide(SecureRandom.layerWebCrypto)),
  SecureRandom.layerWebCrypto
)

layer(Stubs)("A pending command of the fast path", (it) => {
  it.effect("throws nothing where its answer cannot be made: whoever sends it does", () =>
    Effect.gen(function* () {
      const operations = yield* makeFastOperations
      const head = { method: "POST", url: "", headers: { authorization: `License ${key}` }, source: {} }
      const opened = operations.get("/api/v1/license/validate")?.admit(head)
      assert.isDefined(opened)
      const about = { requestId: "req_1", clientAddress: undefined }
      const outcomes: Array<Outcome> = []
      const begun = yield* opened!(Buffer.from('{"fingerprint":"m"}'), about)
      begun((outcome) => void outcomes.push(outcome))
      const signed = { bytes: "{}", signature: { alg: "Ed25519", kid: "k", value: "v" } }
      const signing = (settle: (exit: unknown) => void) => settle(Exit.succeed(signed))
      posted[0]!.resume(Exit.succeed(signing))
      assert.strictEqual(outcomes.length, 1)
      const textOf = yield* outcomes[0]!
      assert.throws(textOf, "boom")
    })
  )
})
