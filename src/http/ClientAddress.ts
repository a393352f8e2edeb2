/**
 * The address that a request comes from. What proxies write about it, X-Forwarded-For or Forwarded (RFC 7239), is believed only
 * as far as trusted proxies have written it: it is read from the right, and the first address that is no trusted proxy is the
 * client's. Anyone can write what stands further left. Of both headers X-Forwarded-For is read and Forwarded ignored: nearly
 * every proxy adds to the first and passes the second on as the client sent it.
 */
import { Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"
import type { RequestHead } from "../api/RequestHead.ts"
import { forwardedFor } from "./Forwarded.ts"

/** A function from the connection's peer and the request's headers to the client's address, in its canonical form. */
export const clientAddress = (trusted: ReadonlyArray<IpNetwork.IpNetwork>) => {
  const isTrusted = (address: string): boolean => {
    const parsed = NetAddress.ipFromString(address)
    return Result.isSuccess(parsed) && trusted.some((network) => IpNetwork.contains(network, parsed.success))
  }
  return (peer: string | undefined, headers: RequestHead["headers"]): string | undefined => {
    const nearest = peer === undefined ? undefined : normalize(peer)
    if (nearest === undefined || trusted.length === 0 || !isTrusted(nearest)) return nearest
    let client = nearest
    for (const hop of hopsOf(headers)) {
      const address = addressOf(hop)
      // What stands here was written by a proxy that we trust, but is no address: nothing beyond it can be believed.
      if (address === undefined) return client
      client = address
      if (!isTrusted(address)) return client
    }
    return client
  }
}

/** What proxies say whom they forward for, the nearest proxy's word first. */
const hopsOf = ({ forwarded, "x-forwarded-for": list }: RequestHead["headers"]): Iterable<string> => {
  if (list === undefined) return forwarded === undefined ? [] : forwardedFor(forwarded)
  return list
    .split(",")
    .reverse()
    .map((hop) => hop.trim())
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

/** The address that one proxy names, which may stand with a port. */
const addressOf = (hop: string): string | undefined => {
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(hop) ?? []
  const [, beforePort] = /^([^:]+):\d+$/.exec(hop) ?? []
  return parsedAddress(bracketed ?? beforePort ?? hop)
}
