/** A letter hears of its answer and must not throw: other letters of the round wait behind it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { RateLimits } from "../../../src/access/rateLimits/RateLimits.ts"
import { Identifiers } from "../../../src/contract/api/Identifier.ts"
import { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import type { PendingCommand } from "../../../src/licensing/engine/PendingCommand.ts"
import * as LicenseKey from "../../../src/licensing/model/LicenseKey.ts"
import { LicenseIdCache } from "../../../src/licensing/runtime/credentials/LicenseIdCache.ts"
import type { Outcome } from "../../../src/licensing/runtime/FastOperation.ts"
import { makeFastOperations } from "../../../src/licensing/runtime/FastOperations.ts"
import { Validations } from "../../../src/licensing/runtime/Validations.ts"
import { Signer } from "../../../src/platform/signing/Signer.ts"

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
  it.effect("does not throw if its response cannot be made; the sender handles that", () =>
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
