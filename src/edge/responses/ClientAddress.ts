/**
 * The client address of a request. X-Forwarded-For or Forwarded (RFC 7239) is trusted only as far as trusted proxies have
 * written it: it is read from the right, and the first address that is not a trusted proxy is the client's. Any client can
 * forge the entries further left. If both headers are present, X-Forwarded-For is read and Forwarded ignored: nearly
 * every proxy appends to the first and passes the second on as the client sent it.
 */
import { Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"
import type { RequestHead } from "../../contract/api/RequestHead.ts"
import { forwardedFor } from "./Forwarded.ts"

export const clientAddress = (trusted: ReadonlyArray<IpNetwork.IpNetwork>) => {
  const isTrusted = remembering(isTrustedBy(trusted))
  const peerOf = remembering(canonicalPeer)
  const addressOf = remembering(addressInHop)
  return (peer: string | undefined, headers: RequestHead["headers"]): string | undefined => {
    const nearest = peer === undefined ? undefined : peerOf(peer)
    if (nearest === undefined || trusted.length === 0 || !isTrusted(nearest)) return nearest
    let client = nearest
    for (const hop of hopsOf(headers)) {
      const address = addressOf(hop)
      // A trusted proxy wrote an entry that is no address: the entries beyond it cannot be trusted.
      if (address === undefined) return client
      client = address
      if (!isTrusted(address)) return client
    }
    return client
  }
}

const rememberedMax = 1024
/** Longer than any address with brackets and a port. */
const rememberedLengthMax = 64

/** Parsing an address takes one or two microseconds, and requests repeat addresses. */
const remembering = <A>(find: (text: string) => A): ((text: string) => A) => {
  const known = new Map<string, A>()
  return (text) => {
    const existing = known.get(text)
    if (existing !== undefined) return existing
    const found = find(text)
    if (known.size >= rememberedMax) known.clear()
    // A copy, because a part of a header keeps the whole header in memory.
    if (text.length <= rememberedLengthMax) known.set(Buffer.from(text).toString(), found)
    return found
  }
}

export const isTrustedBy =
  (trusted: ReadonlyArray<IpNetwork.IpNetwork>) =>
  (address: string): boolean => {
    if (trusted.length === 0) return false
    const parsed = NetAddress.ipFromString(address)
    return Result.isSuccess(parsed) && trusted.some((network) => IpNetwork.contains(network, parsed.success))
  }

const hopsOf = ({ forwarded, "x-forwarded-for": list }: RequestHead["headers"]): Iterable<string> => {
  if (list === undefined) return forwarded === undefined ? [] : forwardedFor(forwarded)
  return list
    .split(",")
    .reverse()
    .map((hop) => hop.trim())
}

/** Converts IPv4-mapped addresses of dual-stack sockets to IPv4, and removes the zone of link-local addresses. */
export const canonicalPeer = (address: string): string => {
  const zone = address.indexOf("%")
  const plain = zone === -1 ? address : address.slice(0, zone)
  return plain.startsWith("::ffff:") ? (parsedAddress(plain) ?? plain) : plain
}

const parsedAddress = (address: string): string | undefined => {
  const parsed = NetAddress.ipFromString(address)
  return Result.isSuccess(parsed) ? NetAddress.formatIp(NetAddress.toCanonical(parsed.success)) : undefined
}

const addressInHop = (hop: string): string | undefined => {
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(hop) ?? []
  const [, beforePort] = /^([^:]+):\d+$/.exec(hop) ?? []
  return parsedAddress(bracketed ?? beforePort ?? hop)
}
