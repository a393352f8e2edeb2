import { assert, describe, it } from "@effect/vitest"
import { IpNetwork } from "effect/net"
import { clientAddress } from "../../../src/edge/responses/ClientAddress.ts"

/** How the address is found where these networks are trusted: by the peer, X-Forwarded-For, Forwarded. */
const trusting =
  (...networks: ReadonlyArray<string>) =>
  (peer: string | undefined, list?: string, forwarded?: string) =>
    clientAddress(networks.map(IpNetwork.fromStringUnsafe))(peer, { "x-forwarded-for": list, forwarded })

describe("The client's address", () => {
  it("is the peer's where no proxy is trusted, whatever a header says", () => {
    const addressOf = trusting()
    assert.strictEqual(addressOf("203.0.113.9", "198.51.100.1", "for=198.51.100.2"), "203.0.113.9")
    assert.strictEqual(addressOf(undefined, "198.51.100.1"), undefined)
  })

  it("is IPv4 where a socket shows it as IPv6, and has no zone", () => {
    const addressOf = trusting()
    assert.strictEqual(addressOf("::ffff:203.0.113.9"), "203.0.113.9")
    assert.strictEqual(addressOf("::ffff:cb00:7109"), "203.0.113.9")
    assert.strictEqual(addressOf("fe80::1%eth0"), "fe80::1")
    assert.strictEqual(addressOf("2001:db8::1"), "2001:db8::1")
  })

  it("is the peer's where the peer is no trusted proxy", () => {
    const addressOf = trusting("10.0.0.0/8")
    assert.strictEqual(addressOf("203.0.113.9", "198.51.100.1"), "203.0.113.9")
    assert.strictEqual(addressOf("203.0.113.9", undefined, "for=198.51.100.1"), "203.0.113.9")
    assert.strictEqual(addressOf("::ffff:11.0.0.1", "198.51.100.1"), "11.0.0.1")
  })
})

describe("The client's address in X-Forwarded-For", () => {
  it("is the last one that no trusted proxy has", () => {
    const addressOf = trusting("10.0.0.0/8", "fd00::/8")
    assert.strictEqual(addressOf("10.0.0.1", "198.51.100.1"), "198.51.100.1")
    assert.strictEqual(addressOf("::ffff:10.0.0.1", "198.51.100.1"), "198.51.100.1")
    assert.strictEqual(addressOf("10.0.0.1", "1.1.1.1, 198.51.100.1, 10.2.3.4"), "198.51.100.1")
    assert.strictEqual(addressOf("fd00::1", "1.1.1.1,2001:db8::1"), "2001:db8::1")
    assert.strictEqual(addressOf("10.0.0.1", "10.0.0.3, 10.0.0.2"), "10.0.0.3")
    assert.strictEqual(addressOf("10.0.0.1"), "10.0.0.1")
  })

  it("is not what a client has forged before it", () => {
    const addressOf = trusting("10.0.0.0/8")
    for (const forged of ["127.0.0.1", "10.9.9.9", "10.9.9.9, 10.8.8.8", "::1", "nonsense", '"', ",,,"]) {
      assert.strictEqual(addressOf("10.0.0.1", `${forged}, 198.51.100.1`), "198.51.100.1")
      assert.strictEqual(addressOf("10.0.0.1", `${forged}, 198.51.100.1, 10.0.0.2`), "198.51.100.1")
    }
  })

  it("is not believed beyond what is no address", () => {
    const addressOf = trusting("10.0.0.0/8")
    assert.strictEqual(addressOf("10.0.0.1", "198.51.100.1, unknown"), "10.0.0.1")
    assert.strictEqual(addressOf("10.0.0.1", "198.51.100.1, , 10.0.0.2"), "10.0.0.2")
    for (const nonsense of ["", "999.1.1.1", "198.51.100.01", "0x0a000001", "198.51.100.1/32", "localhost"]) {
      assert.strictEqual(addressOf("10.0.0.1", nonsense), "10.0.0.1", nonsense)
    }
  })

  it("may stand with a port, and as IPv6 in many spellings", () => {
    const addressOf = trusting("10.0.0.0/8")
    assert.strictEqual(addressOf("10.0.0.1", "198.51.100.1:51234"), "198.51.100.1")
    assert.strictEqual(addressOf("10.0.0.1", "[2001:db8::1]:51234"), "2001:db8::1")
    assert.strictEqual(addressOf("10.0.0.1", "2001:DB8:0:0:0:0:0:1"), "2001:db8::1")
    assert.strictEqual(addressOf("10.0.0.1", "[::ffff:198.51.100.1]"), "198.51.100.1")
    assert.strictEqual(addressOf("10.0.0.1", "198.51.100.1, ::ffff:10.0.0.2"), "198.51.100.1")
  })
})

describe("The client's address in Forwarded", () => {
  const addressOf = (forwarded: string) => trusting("10.0.0.0/8")("10.0.0.1", undefined, forwarded)

  it("is the last one that no trusted proxy has", () => {
    const headers = {
      "for=198.51.100.1": "198.51.100.1",
      "For=198.51.100.1;proto=https;by=10.0.0.1": "198.51.100.1",
      'proto=https; host="a, b;for=1.1.1.1"; for=198.51.100.1': "198.51.100.1",
      'for="198.51.100.1:4711"': "198.51.100.1",
      'for="[2001:db8:cafe::17]:4711"': "2001:db8:cafe::17",
      "for=[2001:db8::1]": "2001:db8::1",
      "for=1.1.1.1, for=198.51.100.1, for=10.2.3.4": "198.51.100.1",
      'for=1.1.1.1,for=198.51.100.1;host="x\\", for=2.2.2.2"': "198.51.100.1",
      "for=10.0.0.3,for=10.0.0.2": "10.0.0.3"
    }
    for (const [header, client] of Object.entries(headers)) assert.strictEqual(addressOf(header), client, header)
  })

  it("is not what a client has forged before it", () => {
    for (const forged of ["for=127.0.0.1", 'for="', 'for="127.0.0.1', '"', "for", "\\", 'x="\\"', "for=10.9.9.9,"]) {
      assert.strictEqual(addressOf(`${forged}, for=198.51.100.1`), "198.51.100.1", forged)
      assert.strictEqual(addressOf(`${forged},for=198.51.100.1;proto=https, for=10.0.0.2`), "198.51.100.1", forged)
    }
  })

  it("is not believed beyond what names no address", () => {
    for (const last of ["for=unknown", "for=_hidden", "proto=https", "", "for=1.1.1.1;for=2.2.2.2", "for=a b", "=1"]) {
      assert.strictEqual(addressOf(`for=198.51.100.1, ${last}`), "10.0.0.1", last)
    }
  })

  it("is not looked for where there is an X-Forwarded-For", () => {
    const both = trusting("10.0.0.0/8")
    assert.strictEqual(both("10.0.0.1", "198.51.100.1", "for=203.0.113.7"), "198.51.100.1")
    assert.strictEqual(both("10.0.0.1", "", "for=203.0.113.7"), "10.0.0.1")
  })
})
