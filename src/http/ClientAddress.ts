/**
 * The address that a request comes from. X-Forwarded-For is believed only as far as trusted proxies have written it: it is read
 * from the right, and the first address that is no trusted proxy is the client's. Anyone can write what stands further left.
 */
import { Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"

/** A function from the connection's peer and the X-Forwarded-For header to the client's address. */
export const clientAddress = (trusted: ReadonlyArray<IpNetwork.IpNetwork>) => {
  const isTrusted = (address: string): boolean => {
    const parsed = NetAddress.ipFromString(address)
    return Result.isSuccess(parsed) && trusted.some((network) => IpNetwork.contains(network, parsed.success))
  }
  return (peer: string | undefined, forwardedFor: string | undefined): string | undefined => {
    const nearest = peer === undefined ? undefined : normalize(peer)
    if (nearest === undefined || forwardedFor === undefined || trusted.length === 0 || !isTrusted(nearest))
      return nearest
    let client = nearest
    for (const hop of forwardedFor.split(",").reverse()) {
      const address = addressOf(hop.trim())
      // What stands here was written by a proxy that we trust, but is no address: nothing beyond it can be believed.
      if (address === undefined) return client
      client = address
      if (!isTrusted(address)) return client
    }
    return client
  }
}

/** IPv4 addresses that a dual-stack socket shows as IPv6 are written as IPv4; zones of link-local addresses are left out. */
const normalize = (address: string): string => {
  const zone = address.indexOf("%")
  const plain = zone === -1 ? address : address.slice(0, zone)
  return plain.startsWith("::ffff:") ? (parsedAddress(plain) ?? plain) : plain
}

const parsedAddress = (address: string): string | undefined => {
  const parsed = NetAddress.ipFromString(address)
  return Result.isSuccess(parsed) ? NetAddress.formatIp(NetAddress.toCanonical(parsed.success)) : undefined
}

/** The address in one element of X-Forwarded-For, which some proxies write with a port. */
const addressOf = (hop: string): string | undefined => {
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(hop) ?? []
  const [, beforePort] = /^([^:]+):\d+$/.exec(hop) ?? []
  return parsedAddress(bracketed ?? beforePort ?? hop)
}
