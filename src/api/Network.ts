/** Networks of addresses, as settings and API keys name them. IPv4 within IPv6 is IPv4, as it is in the addresses that are compared with them. */
import { Option, Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"

/** Of the 128 bits of an IPv4 address in IPv6 (RFC 4291, section 2.5.5.2), those before its own. */
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
