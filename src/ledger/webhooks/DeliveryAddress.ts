/**
 * The allowed addresses of deliveries. API callers choose the URLs of endpoints, and this service requests them from
 * inside its network. So only public addresses are allowed, and those that an operator adds.
 *
 * A name can resolve to other addresses at the next lookup. So the addresses are checked each time a connection is
 * opened, and the connection uses exactly the checked addresses.
 */
import { Context, Effect, Array as Items, Layer, Result, Schema } from "effect"
import { Dns, IpNetwork, NetAddress } from "effect/net"
import { Settings } from "../../platform/config/Config.ts"

/** A host name or address that deliveries must not go to. */
export class AddressRefused extends Schema.TaggedError<AddressRefused>()("AddressRefused", {
  message: Schema.String
}) {}

/** A host name that does not resolve now; it may later. */
export class AddressUnknown extends Schema.TaggedError<AddressUnknown>()("AddressUnknown", {
  message: Schema.String
}) {}

type IpAddresses = Items.NonEmptyReadonlyArray<NetAddress.IpAddress>

export class Addresses extends Context.Service<
  Addresses,
  {
    /** Parses and checks the URL of an endpoint. A host name that does not resolve yet is accepted. */
    check(url: string): Effect.Effect<URL, AddressRefused>
    /** The addresses of a URL's host; all of them and its protocol are allowed. */
    resolve(url: Pick<URL, "hostname" | "protocol">): Effect.Effect<IpAddresses, AddressRefused | AddressUnknown>
  }
>()("licensing/ledger/webhooks/Addresses") {
  static readonly layer = Layer.effect(
    Addresses,
    Effect.gen(function* () {
      const dns = yield* Dns.Dns
      const { webhookAllowCidrs, webhookAllowLocal } = yield* Settings
      const allowed = (address: NetAddress.IpAddress) =>
        isPublic(address) ||
        (webhookAllowLocal && NetAddress.isLoopback(NetAddress.toCanonical(address))) ||
        webhookAllowCidrs.some(IpNetwork.contains(NetAddress.toCanonical(address)))

      const lookup = (hostname: string) =>
        dns.lookup(hostname).pipe(
          Effect.timeout(lookupTimeout),
          Effect.mapError((error) =>
            error._tag === "DnsError" && error.reason === "BadName"
              ? refused(`${hostname} is not a host name`)
              : new AddressUnknown({ message: `${hostname} leads to no address now` })
          )
        )

      const resolve = Effect.fn("Addresses.resolve")(function* ({
        hostname,
        protocol
      }: Pick<URL, "hostname" | "protocol">) {
        // An endpoint may have been made while http was allowed.
        if (!isProtocol(protocol, webhookAllowLocal)) return yield* refused(notHttps)
        const literal = NetAddress.ipFromString(hostname.replace(/^\[|\]$/g, ""))
        const addresses: IpAddresses = Result.isSuccess(literal) ? Items.of(literal.success) : yield* lookup(hostname)
        // One forbidden address forbids the name: a DNS rebinding attack mixes public and private addresses.
        if (!addresses.every(allowed)) return yield* refused(`${hostname} is not a public address`)
        return addresses
      })

      const check = Effect.fn("Addresses.check")(function* (text: string) {
        const url = URL.parse(text)
        const fault = urlFault(text, url, webhookAllowLocal)
        if (url === null || fault !== undefined) return yield* refused(fault ?? notAbsolute)
        yield* Effect.catchTag(resolve(url), "AddressUnknown", () => Effect.void)
        return url
      })

      return Addresses.of({ check, resolve })
    })
  )
}

const lookupTimeout = "2 seconds"

const refused = (message: string) => new AddressRefused({ message })

const notAbsolute = "it is not an absolute URL"
const notHttps = "it is not https"

const isProtocol = (protocol: string, allowLocal: boolean): boolean =>
  protocol === "https:" || (allowLocal && protocol === "http:")

/** The fault of an endpoint's URL as a text, or undefined. */
const urlFault = (text: string, url: URL | null, allowLocal: boolean): string | undefined => {
  // A URL parser silently drops blanks and control characters, so that the text differs from the URL.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters in question
  if (url === null || /[\s\u0000-\u001f\u007f\\]/.test(text)) return notAbsolute
  if (!isProtocol(url.protocol, allowLocal)) return notHttps
  if (url.username !== "" || url.password !== "") return "it contains credentials"
  if (text.includes("#")) return "it contains a fragment"
  return !allowLocal && /(^|\.)localhost\.?$/.test(url.hostname) ? "it leads to this machine" : undefined
}

const networks = (...texts: ReadonlyArray<string>) => texts.map(IpNetwork.fromStringUnsafe)

// From the registries of special-purpose addresses (RFC 6890), and 168.63.129.16, a public address that a cloud's
// infrastructure service uses inside its network.
const reserved = networks(
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4"
)
// Only 2000::/3 is allocated for the internet. It contains addresses that map to others (Teredo, 6to4) and
// documentation ranges.
const globalUnicast = IpNetwork.fromStringUnsafe("2000::/3")
const reservedWithin = networks("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

const isPublic = (address: NetAddress.IpAddress): boolean => {
  const canonical = NetAddress.toCanonical(address)
  return NetAddress.isIpv4Address(canonical)
    ? !reserved.some(IpNetwork.contains(canonical))
    : IpNetwork.contains(globalUnicast, canonical) && !reservedWithin.some(IpNetwork.contains(canonical))
}
