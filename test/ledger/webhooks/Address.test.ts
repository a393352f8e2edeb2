/**
 * The addresses that deliveries may go to: every non-public class is refused in every notation, and so are names that
 * resolve to it.
 */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { Dns, IpNetwork, NetAddress } from "effect/net"
import { Addresses } from "../../../src/ledger/webhooks/DeliveryAddress.ts"
import { Settings } from "../../../src/platform/config/Config.ts"

const hosts = {
  "public.example": ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
  "loopback.example": ["127.0.0.1"],
  "private.example": ["10.1.2.3"],
  "mixed.example": ["93.184.215.14", "10.1.2.3"],
  "mapped.example": ["::ffff:169.254.169.254"],
  "nat64.example": ["64:ff9b::a9fe:a9fe"],
  localhost: ["127.0.0.1", "::1"]
} as const

const layerAddresses = (settings: Parameters<typeof Settings.layerTest>[0] = {}) =>
  Addresses.layer.pipe(Layer.provide([Layer.orDie(Dns.layerStatic({ hosts })), Settings.layerTest(settings)]))

const refusalMessageOf = Effect.fnUntraced(function* (url: string) {
  const result = yield* Effect.result((yield* Addresses).check(url))
  return Result.isFailure(result) ? result.failure.message : undefined
})

const refusesAll = Effect.fnUntraced(function* (urls: ReadonlyArray<string>) {
  for (const url of urls) assert.isDefined(yield* refusalMessageOf(url), url)
})

const acceptsAll = Effect.fnUntraced(function* (urls: ReadonlyArray<string>) {
  for (const url of urls) assert.isUndefined(yield* refusalMessageOf(url), url)
})

/** At least one address of each class that is not globally reachable (RFC 6890 and the registries that follow it). */
const classes: Readonly<Record<string, ReadonlyArray<string>>> = {
  "this network": ["0.0.0.0", "0.1.2.3", "[::]"],
  loopback: ["127.0.0.1", "127.255.255.254", "[::1]"],
  private: ["10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255"],
  "unique local": ["[fc00::1]", "[fd00:ec2::254]", "[fdff::1]"],
  "link-local": ["169.254.0.1", "[fe80::1]", "[febf::1]"],
  "site-local": ["[fec0::1]"],
  "metadata of clouds": ["169.254.169.254", "168.63.129.16", "100.100.100.200"],
  "carrier-grade NAT": ["100.64.0.1", "100.127.255.255"],
  multicast: ["224.0.0.1", "239.255.255.255", "[ff02::1]", "[ff0e::1]"],
  "broadcast and reserved": ["255.255.255.255", "240.0.0.1", "254.1.1.1"],
  documentation: ["192.0.2.1", "198.51.100.1", "203.0.113.1", "[2001:db8::1]", "[3fff::1]"],
  benchmarking: ["198.18.0.1", "198.19.255.255", "[2001:2::1]"],
  "protocol assignments": ["192.0.0.1", "192.0.0.170", "[2001::1]", "[2001:1::1]"],
  "IPv4-mapped IPv6": ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]"],
  "IPv4-compatible IPv6": ["[::127.0.0.1]", "[::10.0.0.1]", "[::808:808]"],
  NAT64: ["[64:ff9b::127.0.0.1]", "[64:ff9b::808:808]", "[64:ff9b:1::1]"],
  "6to4": ["[2002:7f00:1::]", "[2002:808:808::1]", "192.88.99.1"],
  Teredo: ["[2001:0:4136:e378:8000:63bf:3fff:fdd2]"],
  "discard and segment routing": ["[100::1]", "[5f00::1]"],
  "spellings of 127.0.0.1": [
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "0x7f.0x0.0x0.0x1",
    "%31%32%37.0.0.1",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:ffff:7f00:0001]"
  ],
  "spellings of 169.254.169.254": [
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.254.169.254."
  ]
}

layer(layerAddresses())("An address of an endpoint", (it) => {
  describe("is refused if it is", () => {
    for (const [name, resolved] of Object.entries(classes)) {
      it.effect(name, () =>
        refusesAll(resolved.flatMap((host) => [`https://${host}/`, `https://${host}:8443/hook?a=b`]))
      )
    }
  })

  it.effect("is refused if its name resolves to one of them, even beside a public one", () =>
    refusesAll([
      "https://loopback.example/",
      "https://private.example/",
      "https://mixed.example/",
      "https://mapped.example/",
      "https://nat64.example/",
      "https://LOOPBACK.example./",
      "https://localhost/",
      "https://localhost./",
      "https://LocalHost:8443/",
      "https://anything.localhost/"
    ])
  )

  it.effect("is refused if it is not plain https", () =>
    refusesAll([
      "http://public.example/",
      "ftp://public.example/",
      "file:///etc/passwd",
      "data:text/plain,x",
      "gopher://public.example/",
      "https://user@public.example/",
      "https://user:secret@public.example/",
      "https://:secret@public.example/",
      "https://public.example/#part",
      "https://public.example/#",
      "public.example/hook",
      "//public.example/hook",
      "/hook",
      "https://",
      "https://public.example:99999/",
      " https://public.example/",
      "https://public.example/a b",
      "https://public.example/\n",
      "https://pub\tlic.example/",
      "https:\\\\public.example\\hook",
      "https://10.0.0.1\\@public.example/",
      ""
    ])
  )

  it.effect("is accepted if it is public, or does not resolve yet", () =>
    acceptsAll([
      "https://public.example/",
      "https://public.example./hook",
      "https://PUBLIC.example:8443/hook?token=a%20b",
      "https://8.8.8.8/",
      "https://172.32.0.1/",
      "https://172.15.255.255/",
      "https://100.63.255.255/",
      "https://100.128.0.1/",
      "https://169.253.0.1/",
      "https://198.17.0.1/",
      "https://[2606:4700::1111]/",
      "https://[::ffff:8.8.8.8]/",
      "https://unknown.example/hook"
    ])
  )

  it.effect("is checked against all addresses of its name, and connections go only to those", () =>
    Effect.gen(function* () {
      const addresses = yield* Addresses
      const resolve = (host: string) => addresses.resolve(new URL(`https://${host}/`))
      const resolved = yield* resolve("public.example")
      assert.deepStrictEqual(resolved.map(NetAddress.formatIp), [...hosts["public.example"]])
      assert.strictEqual((yield* Effect.flip(resolve("mixed.example")))._tag, "AddressRefused")
      assert.strictEqual((yield* Effect.flip(resolve("unknown.example")))._tag, "AddressUnknown")
      assert.strictEqual((yield* Effect.flip(resolve("[::1]")))._tag, "AddressRefused")
    })
  )
})

layer(layerAddresses({ webhookAllowLocal: true }))("In development", (it) => {
  it.effect("loopback and http are allowed, and nothing else", () =>
    Effect.gen(function* () {
      yield* acceptsAll([
        "http://127.0.0.1:8080/",
        "http://localhost:8080/",
        "https://localhost/",
        "http://[::1]:8080/",
        "http://[::ffff:127.0.0.1]/",
        "http://loopback.example/",
        "http://public.example/"
      ])
      const { loopback, "IPv4-mapped IPv6": mapped, [`spellings of 127.0.0.1`]: spellings, ...others } = classes
      const loopbackToo = new Set([...loopback!, ...mapped!, ...spellings!])
      yield* refusesAll(
        Object.values(others)
          .flat()
          .filter((host) => !loopbackToo.has(host))
          .map((host) => `http://${host}/`)
      )
      yield* refusesAll([
        "http://[::ffff:10.0.0.1]/",
        "http://private.example/",
        "http://user@localhost/",
        "ftp://localhost/"
      ])
    })
  )
})

const withNetworks = ["10.1.0.0/16", "fd00:1::/32"].map(IpNetwork.fromStringUnsafe)

layer(layerAddresses({ webhookAllowCidrs: withNetworks }))("With allowed private networks", (it) => {
  it.effect("those networks are allowed over https, and nothing else", () =>
    Effect.gen(function* () {
      yield* acceptsAll([
        "https://10.1.2.3/",
        "https://private.example/",
        "https://mixed.example/",
        "https://[fd00:1::5]/",
        "https://[::ffff:10.1.2.3]/"
      ])
      yield* refusesAll([
        "http://10.1.2.3/",
        "https://10.2.0.1/",
        "https://127.0.0.1/",
        "https://[fd00:2::5]/",
        "https://169.254.169.254/"
      ])
    })
  )
})
