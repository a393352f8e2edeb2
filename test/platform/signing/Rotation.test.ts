/** The signing key is rotated while two instances of the service respond, and clients verify the responses. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { canonicalize, type Json } from "../../../src/contract/api/CanonicalJson.ts"
import { isSignature, kidOf } from "../../../src/platform/signing/SigningKey.ts"
import { Database } from "../../support/database/Database.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { startServer, TestServer } from "../../support/http/TestServer.ts"

type RunningServer = Effect.Success<ReturnType<typeof startServer>>

interface SignedResponse {
  readonly data: Json
  readonly signature: { readonly alg: string; readonly kid: string; readonly value: string }
}

const rotations = 12
const callers = 8

/** The public keys by kid, as this instance publishes them now. */
const publishedKeys = Effect.fnUntraced(function* (server: RunningServer) {
  const answer = yield* server.send({ path: "/api/v1/system/public-keys", anonymous: true })
  const keys = assertAnswered(answer, 200) as ReadonlyArray<{ readonly kid: string; readonly public_key: string }>
  return new Map(keys.map(({ kid, public_key }) => [kid, Buffer.from(public_key, "base64")]))
})

layer(Database.layer, { timeout: 60_000 })("While the signing key is rotated", (it) => {
  it.effect("every response of every instance is signed with a published key, and the newest key takes over", () =>
    Effect.gen(function* () {
      const servers = [yield* startServer(), yield* startServer()] as const
      const license = yield* issue().pipe(Effect.provideService(TestServer, servers[0]))
      const headers = { authorization: `License ${license.license_key}` }
      const send = (server: RunningServer, operation: string) =>
        server.send({ method: "POST", path: `/api/v1/license/${operation}`, headers, body: { fingerprint: "f" } })
      assertAnswered(yield* send(servers[0], "activate"), 200)

      /** Sends a request to one instance, looks the key up at the other, and verifies the exact bytes received. */
      const verifiedKid = Effect.fnUntraced(function* (server: RunningServer, keySource: RunningServer) {
        const answer = yield* send(server, "check")
        const published = yield* publishedKeys(keySource)
        assertAnswered(answer, 200)
        const { data, signature } = answer.json as SignedResponse
        const key = published.get(signature.kid)
        assert.isDefined(key, `signed with ${signature.kid}, which is not published`)
        assert.deepStrictEqual([signature.alg, kidOf(key)], ["Ed25519", signature.kid])
        const raw = /^\{"data":(.*),"signature":\{/.exec(answer.text)?.[1] ?? ""
        assert.strictEqual(raw, canonicalize(data))
        assert.isTrue(isSignature(key, Buffer.from(raw), Buffer.from(signature.value, "base64")))
        return signature.kid
      })

      const seenKids = new Set<string>()
      let isRotating = true
      const caller = (index: number) =>
        Effect.gen(function* () {
          let count = 0
          for (; isRotating; count++) seenKids.add(yield* verifiedKid(servers[index % 2]!, servers[(index >> 1) % 2]!))
          return count
        })
      const callersFiber = yield* Effect.forkChild(
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
        // The next rotation waits until both instances sign with this key and a caller has seen it, except after each third one.
        if (rotation % 3 === 2) continue
        for (const server of servers) {
          yield* verifiedKid(server, server).pipe(
            Effect.repeat({ until: (signedWith) => signedWith === kid && seenKids.has(kid) })
          )
        }
      }
      isRotating = false
      const counts = yield* Fiber.join(callersFiber)
      assert.isTrue(counts.every((count) => count > rotations))
      const published = yield* publishedKeys(servers[0])
      assert.strictEqual(published.size, rotations + 1)
      assert.isAtLeast(kids.filter((kid) => seenKids.has(kid)).length, rotations - rotations / 3)
    }).pipe(Effect.scoped)
  )
})
