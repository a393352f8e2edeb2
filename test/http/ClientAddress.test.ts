import { assert, describe, it } from "@effect/vitest"
import { IpNetwork } from "effect/net"
import { clientAddress } from "../../src/http/ClientAddress.ts"

const trusting = (...networks: ReadonlyArray<string>) => clientAddress(networks.map(IpNetwork.fromStringUnsafe))

describe("The client's address", () => {
  it("is the peer's where no proxy is trusted, whatever a header says", () => {
    const addressOf = trusting()
    assert.strictEqual(addressOf("203.0.113.9", "198.51.100.1"), "203.0.113.9")
    assert.strictEqual(addressOf(undefined, "198.51.100.1"), undefined)
  })

  it("is IPv4 where a socket shows it as IPv6, and has no zone", () => {
    const addressOf = trusting()
    assert.strictEqual(addressOf("::ffff:203.0.113.9", undefined), "203.0.113.9")
    assert.strictEqual(addressOf("::ffff:cb00:7109", undefined), "203.0.113.9")
    assert.strictEqual(addressOf("fe80::1%eth0", undefined), "fe80::1")
    assert.strictEqual(addressOf("2001:db8::1", undefined), "2001:db8::1")
  })

  it("is the last one in X-Forwarded-For that no trusted proxy has", () => {
    const addressOf = trusting("10.0.0.0/8", "fd00::/8")
    assert.strictEqual(addressOf("10.0.0.1", "198.51.100.1"), "198.51.100.1")
    assert.strictEqual(addressOf("::ffff:10.0.0.1", "198.51.100.1"), "198.51.100.1")
    assert.strictEqual(addressOf("10.0.0.1", "1.1.1.1, 198.51.100.1, 10.2.3.4"), "198.51.100.1")
    assert.strictEqual(addressOf("fd00::1", "1.1.1.1,2001:db8::1"), "2001:db8::1")
    assert.strictEqual(addressOf("10.0.0.1", "10.0.0.3, 10.0.0.2"), "10.0.0.3")
    assert.strictEqual(addressOf("10.0.0.1", undefined), "10.0.0.1")
  })

  it("is the peer's where the peer is no trusted proxy", () => {
    assert.strictEqual(trusting("10.0.0.0/8")("203.0.113.9", "198.51.100.1"), "203.0.113.9")
  })

  it("is not believed beyond what is no address", () => {
    const addressOf = trusting("10.0.0.0/8")
    assert.strictEqual(addressOf("10.0.0.1", "198.51.100.1, unknown"), "10.0.0.1")
    assert.strictEqual(addressOf("10.0.0.1", "198.51.100.1, , 10.0.0.2"), "10.0.0.2")
    assert.strictEqual(addressOf("10.0.0.1", ""), "10.0.0.1")
    assert.strictEqual(addressOf("10.0.0.1", "999.1.1.1"), "10.0.0.1")
  })

  it("may stand with a port", () => {
    const addressOf = trusting("10.0.0.0/8")
    assert.strictEqual(addressOf("10.0.0.1", "198.51.100.1:51234"), "198.51.100.1")
    assert.strictEqual(addressOf("10.0.0.1", "[2001:db8::1]:51234"), "2001:db8::1")
    assert.strictEqual(addressOf("10.0.0.1", "[::ffff:198.51.100.1]"), "198.51.100.1")
  })
})
