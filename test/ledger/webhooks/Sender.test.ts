/** Requests to receivers: which addresses they connect to for all results of name resolution, and how they end. */
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Dns, IpNetwork, NetAddress } from "effect/net"
import { Addresses } from "../../../src/ledger/webhooks/DeliveryAddress.ts"
import { Sender } from "../../../src/ledger/webhooks/Sender.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { certificate, privateKey } from "../../support/http/Http.ts"
import { makeReceiver } from "../../support/http/Webhooks.ts"

/** A name server whose answers the test sets, one for each look-up; the last one repeats. */
class Names extends Context.Service<Names, { readonly answers: Array<ReadonlyArray<string>>; lookups: number }>()(
  "licensing/test/Names"
) {
  static readonly layer = Layer.sync(Names, () => Names.of({ answers: [], lookups: 0 }))
}

const dns = Layer.effect(
  Dns.Dns,
  Effect.map(Names, (names) =>
    Dns.make({
      lookup: () =>
        Effect.sync(() => {
          names.lookups++
          const answer = names.answers.length > 1 ? names.answers.shift()! : (names.answers[0] ?? [])
          return answer.map(NetAddress.ipFromStringUnsafe)
        })
    })
  )
)

const layerSender = (settings: Parameters<typeof Settings.layerTest>[0]) =>
  Sender.layer.pipe(
    Layer.provideMerge(Addresses.layer),
    Layer.provide([dns, Settings.layerTest(settings)]),
    Layer.provideMerge(Names.layer)
  )

const resolvesTo = Effect.fnUntraced(function* (...answers: ReadonlyArray<ReadonlyArray<string>>) {
  const names = yield* Names
  names.answers.splice(0, names.answers.length, ...answers)
  names.lookups = 0
})

const post = Effect.fnUntraced(function* (url: string) {
  return yield* (yield* Sender).post(new URL(url), { "content-type": "text/plain" }, Buffer.from("hello"))
})

const failureOf = (url: string) => Effect.map(Effect.flip(post(url)), ({ reason }) => reason)

layer(layerSender({ webhookAllowLocal: true }))("A request", (it) => {
  it.effect("connects to exactly the checked address, with the requested name", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      yield* resolvesTo(["127.0.0.1"], ["10.0.0.1"])
      assert.deepStrictEqual(yield* post(`http://receiver.example:${receiver.port}/a?b=c`), {
        status: 204,
        retryAfter: undefined
      })
      assert.strictEqual((yield* Names).lookups, 1)
      const { body, headers, path } = yield* receiver.next
      assert.strictEqual(headers.host, `receiver.example:${receiver.port}`)
      assert.deepStrictEqual([path, body.toString()], ["/a?b=c", "hello"])
    })
  )

  it.effect("tries the addresses of a name one after another", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      // Nothing listens on the second one.
      yield* resolvesTo(["127.0.0.99", "127.0.0.1"])
      assert.strictEqual((yield* post(`http://two.example:${receiver.port}/`)).status, 204)
    })
  )

  it.effect("reuses connections", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      yield* resolvesTo(["127.0.0.1"])
      const url = `http://again.example:${receiver.port}/`
      for (let index = 0; index < 10; index++) yield* post(url)
      // A response may be reported before its connection is free for the next request.
      assert.isAtMost(new Set(receiver.received.map(({ connection }) => connection)).size, 2)
    })
  )

  it.effect("does not wait for another request to the same host that hangs", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      receiver.answer(({ path }) => (path === "/hangs" ? "hang" : { status: 200 }))
      const hanging = yield* Effect.forkChild(post(`http://127.0.0.1:${receiver.port}/hangs`))
      yield* receiver.next
      for (let index = 0; index < 3; index++) yield* post(`http://127.0.0.1:${receiver.port}/`)
      assert.isUndefined(hanging.pollUnsafe())
    })
  )

  it.effect("reports why there was no response", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      yield* resolvesTo([])
      assert.strictEqual(yield* failureOf("http://unknown.example/"), "address_unknown")
      assert.strictEqual(yield* failureOf("http://127.0.0.1:1/"), "connection_failed")
      receiver.answer(() => ({ respond: (response) => void response.socket?.destroy() }))
      assert.strictEqual(yield* failureOf(receiver.url), "connection_failed")
      receiver.answer(() => ({ respond: (response) => void response.socket?.end("this is no HTTP\r\n\r\n") }))
      assert.strictEqual(yield* failureOf(receiver.url), "connection_failed")
    })
  )

  it.effect("over https refuses a certificate from an untrusted authority", () =>
    Effect.gen(function* () {
      const server = createServer({ key: privateKey, cert: certificate }, (_, response) => response.end())
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => server.close())
      )
      yield* resolvesTo(["127.0.0.1"])
      const { port } = server.address() as AddressInfo
      assert.strictEqual(yield* failureOf(`https://receiver.example:${port}/`), "tls_failed")
      assert.strictEqual(yield* failureOf(`https://127.0.0.1:${port}/`), "tls_failed")
    })
  )
})

layer(layerSender({}))("A request to a name that", (it) => {
  it.effect(
    "resolved to a public address when it was checked is not sent once the name resolves to a private one",
    () =>
      Effect.gen(function* () {
        const receiver = yield* makeReceiver
        const url = `https://rebinding.example:${receiver.port}/`
        yield* resolvesTo(["93.184.215.14"], ["127.0.0.1"])
        yield* (yield* Addresses).check(url)
        assert.strictEqual(yield* failureOf(url), "address_refused")
        yield* resolvesTo(["93.184.215.14", "127.0.0.1"])
        assert.strictEqual(yield* failureOf(url), "address_refused")
        assert.deepStrictEqual(receiver.received, [])
      })
  )

  it.effect("is a private address in numeric form is not sent", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      for (const host of ["127.0.0.1", "[::1]", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"]) {
        assert.strictEqual(yield* failureOf(`http://${host}:${receiver.port}/`), "address_refused", host)
        assert.strictEqual(yield* failureOf(`https://${host}:${receiver.port}/`), "address_refused", host)
      }
      assert.deepStrictEqual(receiver.received, [])
    })
  )
})

const loopback = [IpNetwork.fromStringUnsafe("127.0.0.0/8")]

layer(layerSender({ webhookAllowCidrs: loopback }))("A request over http", (it) => {
  it.effect("is not sent, not even to an allowed address: its endpoint was made in development", () =>
    Effect.gen(function* () {
      const receiver = yield* makeReceiver
      yield* resolvesTo(["127.0.0.1"])
      for (const host of ["127.0.0.1", "receiver.example"])
        assert.strictEqual(yield* failureOf(`http://${host}:${receiver.port}/`), "address_refused", host)
      assert.deepStrictEqual(receiver.received, [])
    })
  )
})
