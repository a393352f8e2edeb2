/** The signing key is rotated while two instances of the service answer, and clients verify what they get. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { canonicalize, type Json } from "../../src/api/CanonicalJson.ts"
import { isSignature, kidOf } from "../../src/signing/SigningKey.ts"
import { Database } from "../support/Database.ts"
import { assertAnswered } from "../support/Http.ts"
import { issue } from "../support/IssuedLicenses.ts"
import { startServer, TestServer } from "../support/TestServer.ts"

/** Beside others on a busy machine. */
const minute = 60_000

type Server = Effect.Success<ReturnType<typeof startServer>>

interface SignedAnswer {
  readonly data: Json
  readonly signature: { readonly alg: string; readonly kid: string; readonly value: string }
}

const rotations = 12
const callers = 8

/** The public keys by kid, as a client of this instance finds them at this moment. */
const publishedBy = Effect.fnUntraced(function* (server: Server) {
  const answer = yield* server.send({ path: "/api/v1/system/public-keys", anonymous: true })
  const keys = assertAnswered(answer, 200) as ReadonlyArray<{ readonly kid: string; readonly public_key: string }>
  return new Map(keys.map(({ kid, public_key }) => [kid, Buffer.from(public_key, "base64")]))
})

layer(Database.layer, { timeout: 60_000 })("While the signing key is rotated", (it) => {
  it.effect(
    "every answer of every instance is signed with a key that clients find, and the newest takes over",
    () =>
      Effect.gen(function* () {
        const servers = [yield* startServer(), yield* startServer()] as const
        const license = yield* issue().pipe(Effect.provideService(TestServer, servers[0]))
        const headers = { authorization: `License ${license.license_key}` }
        const ask = (server: Server, operation: string) =>
          server.send({ method: "POST", path: `/api/v1/license/${operation}`, headers, body: { fingerprint: "f" } })
        assertAnswered(yield* ask(servers[0], "activate"), 200)

        /** Asks one instance, looks the key up at the other, and verifies the very bytes that came. */
        const verified = Effect.fnUntraced(function* (server: Server, lookedUpAt: Server) {
          const answer = yield* ask(server, "check")
          const published = yield* publishedBy(lookedUpAt)
          assertAnswered(answer, 200)
          const { data, signature } = answer.json as SignedAnswer
          const key = published.get(signature.kid)
          assert.isDefined(key, `signed with ${signature.kid}, which is not published`)
          assert.deepStrictEqual([signature.alg, kidOf(key)], ["Ed25519", signature.kid])
          const raw = /^\{"data":(.*),"signature":\{/.exec(answer.text)?.[1] ?? ""
          assert.strictEqual(raw, canonicalize(data))
          assert.isTrue(isSignature(key, Buffer.from(raw), Buffer.from(signature.value, "base64")))
          return signature.kid
        })

        const seen = new Set<string>()
        let rotating = true
        const caller = (index: number) =>
          Effect.gen(function* () {
            let count = 0
            for (; rotating; count++) seen.add(yield* verified(servers[index % 2]!, servers[(index >> 1) % 2]!))
            return count
          })
        const calling = yield* Effect.forkChild(
          Effect.forEach(
            Array.from({ length: callers }, (_, index) => index),
            caller,
            { concurrency: "unbounded" }
          )
        )
        const kids: Array<string> = []
        for (let rotation = 0; rotation < rotations; rotation++) {
          const { kid } = yield* servers[rotation % 2]!.keyRing.rotate
          kids.push(kid)
          // The next rotation comes once both instances sign with this one, every third before.
          if (rotation % 3 === 2) continue
          const rotated = performance.now()
          for (const server of servers) {
            yield* verified(server, server).pipe(Effect.repeat({ until: (signedWith) => signedWith === kid }))
          }
          assert.isBelow(performance.now() - rotated, 1_000)
        }
        rotating = false
        const counts = yield* Fiber.join(calling)
        assert.isTrue(counts.every((count) => count > rotations))
        const published = yield* publishedBy(servers[0])
        assert.strictEqual(published.size, rotations + 1)
        assert.isAtLeast(kids.filter((kid) => seen.has(kid)).length, rotations - rotations / 3)
      }).pipe(Effect.scoped),
    minute
  )
})
