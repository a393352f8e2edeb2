/** The networks that a key may be used from, with and without proxies. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { IpNetwork } from "effect/net"
import { assertAnswered, assertRefused } from "../support/http/Http.ts"
import { TestServer } from "../support/http/TestServer.ts"

const makeKey = Effect.flatMap(TestServer, ({ client }) =>
  client["api-keys"].create({
    payload: {
      name: "from the office",
      scopes: ["product:write"],
      allowed_cidrs: ["203.0.113.0/24", "2001:db8::/32", "::ffff:198.51.100.64/122"]
    }
  })
)

let keyCount = 0

const create = (token: string, headers: { readonly [name: string]: string } = {}) =>
  Effect.flatMap(TestServer, ({ send }) =>
    send({
      method: "POST",
      path: "/api/v1/products",
      headers: { authorization: `Bearer ${token}`, ...headers },
      body: { name: "P", code: `p-${++keyCount}` }
    })
  )

layer(TestServer.layer)("Without a trusted proxy", (it) => {
  it.effect("only the connection determines the client's address", () =>
    Effect.gen(function* () {
      const { token } = yield* makeKey
      const claims = [
        {},
        { "x-forwarded-for": "203.0.113.9" },
        { forwarded: "for=203.0.113.9" },
        { "x-real-ip": "203.0.113.9" }
      ]
      for (const headers of claims) {
        assertRefused(yield* create(token, headers), 401, "TOKEN_ADDRESS_BLOCKED", "127.0.0.1")
      }
    })
  )
})

layer(TestServer.layerWith({ trustedProxies: [IpNetwork.fromStringUnsafe("127.0.0.0/8")] }))("Behind a proxy", (it) => {
  it.effect("a key is accepted from its networks, and the event contains the client's address", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { token } = yield* makeKey
      const addresses = {
        "203.0.113.9": { "x-forwarded-for": "203.0.113.9" },
        "203.0.113.10": { "x-forwarded-for": "198.51.100.7, 203.0.113.10, 127.0.0.2" },
        "203.0.113.11": { "x-forwarded-for": "::ffff:203.0.113.11, ::ffff:7f00:2" },
        // From a network written as IPv4-mapped IPv6.
        "198.51.100.127": { "x-forwarded-for": "198.51.100.127" },
        "2001:db8::1": { forwarded: 'for=198.51.100.7, for="[2001:db8::1]:4711";proto=https' }
      }
      for (const [address, headers] of Object.entries(addresses)) {
        const product = assertAnswered(yield* create(token, headers), 201) as { readonly id: string }
        const [event] = (yield* client.events.list({ query: { resource_id: product.id } })).items
        assert.strictEqual(event?.ip_address, address)
      }
    })
  )

  it.effect("and is refused from all others, for any header that the client sent to the proxy", () =>
    Effect.gen(function* () {
      const { token } = yield* makeKey
      const forged: ReadonlyArray<readonly [string, { readonly [name: string]: string }]> = [
        ["127.0.0.1", {}],
        ["198.51.100.7", { "x-forwarded-for": "203.0.113.9, 198.51.100.7" }],
        ["198.51.100.128", { "x-forwarded-for": "198.51.100.128" }],
        ["198.51.100.7", { forwarded: "for=203.0.113.9, for=198.51.100.7" }],
        ["198.51.100.7", { "x-forwarded-for": "198.51.100.7", forwarded: "for=203.0.113.9" }],
        ["127.0.0.1", { "x-forwarded-for": "203.0.113.9, nonsense" }],
        ["127.0.0.1", { forwarded: "for=203.0.113.9, for=unknown" }],
        ["127.0.0.1", { "x-real-ip": "203.0.113.9", "x-client-ip": "203.0.113.9" }]
      ]
      for (const [address, headers] of forged) {
        assertRefused(yield* create(token, headers), 401, "TOKEN_ADDRESS_BLOCKED", address)
      }
    })
  )
})
