/**
 * IP networks in settings and API keys. IPv4-mapped IPv6 networks become IPv4 networks, because client addresses are
 * converted in the same way before the comparison.
 */
import { Option, Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"

/** The bits before the IPv4 address in an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2). */
const mappedPrefix = 96

/** A network in CIDR notation, IPv4 or IPv6, without host bits. */
export const networkFromString = (text: string): Result.Result<IpNetwork.IpNetwork, NetAddress.NetAddressError> =>
  Result.flatMap(IpNetwork.fromString(text), (network): ReturnType<typeof IpNetwork.fromString> => {
    const { address, prefixLength } = network
    const mapped = NetAddress.isIpv6Address(address) ? NetAddress.fromIpv4Mapped(address) : Option.none()
    return prefixLength >= mappedPrefix && Option.isSome(mapped)
      ? IpNetwork.make(mapped.value, prefixLength - mappedPrefix)
      : Result.succeed(network)
  })
