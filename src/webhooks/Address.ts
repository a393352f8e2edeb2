/**
 * Where deliveries may go. An endpoint's address is chosen by an API caller and requested by this service from inside its
 * network, so only what the whole internet can reach is allowed, and what an operator allows on top.
 *
 * The name in a URL proves nothing: it may lead elsewhere at the next look-up. So the addresses that a name leads to are judged
 * each time a connection is opened, and the connection goes to exactly the addresses that were judged.
 */
import { Context, Effect, Array as Items, Layer, Result, Schema } from "effect"
import { Dns, IpNetwork, NetAddress } from "effect/net"
import { Settings } from "../config/Config.ts"

/** A name or address that deliveries must not go to. */
export class AddressRefused extends Schema.TaggedError<AddressRefused>()("AddressRefused", {
  message: Schema.String
}) {}

/** A name that leads nowhere now; it may later. */
export class AddressUnknown extends Schema.TaggedError<AddressUnknown>()("AddressUnknown", {
  message: Schema.String
}) {}

type IpAddresses = Items.NonEmptyReadonlyArray<NetAddress.IpAddress>

export class Addresses extends Context.Service<
  Addresses,
  {
    /** The parsed address of an endpoint, which must be one that deliveries may go to as far as can be told now. */
    check(url: string): Effect.Effect<URL, AddressRefused>
    /** The addresses to connect to for the host of a URL, all of them allowed. */
    resolve(hostname: string): Effect.Effect<IpAddresses, AddressRefused | AddressUnknown>
  }
>()("licensing/webhooks/Addresses") {
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
          Effect.timeout(lookupPatience),
          Effect.mapError((error) =>
            error._tag === "DnsError" && error.reason === "BadName"
              ? refused(`${hostname} is no host name`)
              : new AddressUnknown({ message: `${hostname} leads to no address now` })
          )
        )

      const resolve = Effect.fn("Addresses.resolve")(function* (hostname: string) {
        const literal = NetAddress.ipFromString(hostname.replace(/^\[|\]$/g, ""))
        const addresses: IpAddresses = Result.isSuccess(literal) ? Items.of(literal.success) : yield* lookup(hostname)
        // One that is not allowed condemns the name: a public address beside a private one is how rebinding begins.
        if (!addresses.every(allowed)) return yield* refused(`${hostname} is not reachable for the whole internet`)
        return addresses
      })

      const check = Effect.fn("Addresses.check")(function* (text: string) {
        const url = URL.parse(text)
        const fault = urlFault(text, url, webhookAllowLocal)
        if (url === null || fault !== undefined) return yield* refused(fault ?? notAbsolute)
        yield* Effect.catchTag(resolve(url.hostname), "AddressUnknown", () => Effect.void)
        return url
      })

      return Addresses.of({ check, resolve })
    })
  )
}

const lookupPatience = "2 seconds"

const refused = (message: string) => new AddressRefused({ message })

const notAbsolute = "it is no absolute URL"

/** What is wrong with an endpoint's URL as a text, or undefined. */
const urlFault = (text: string, url: URL | null, allowLocal: boolean): string | undefined => {
  // A URL parser drops blanks and control characters in silence, and then the text says something else than the URL.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters in question
  if (url === null || /[\s\u0000-\u001f\u007f\\]/.test(text)) return notAbsolute
  if (url.protocol !== "https:" && !(allowLocal && url.protocol === "http:")) return "it is not https"
  if (url.username !== "" || url.password !== "") return "it holds credentials"
  if (text.includes("#")) return "it holds a fragment"
  return !allowLocal && /(^|\.)localhost\.?$/.test(url.hostname) ? "it leads to this machine" : undefined
}

const networks = (...texts: ReadonlyArray<string>) => texts.map(IpNetwork.fromStringUnsafe)

// From the registries of special-purpose addresses (RFC 6890), with 168.63.129.16, which is public and answers as a cloud's
// own machinery to every machine of it.
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
// Only 2000::/3 is given out to the internet; in it lie addresses that stand for others (Teredo, 6to4) and examples.
const givenOut = IpNetwork.fromStringUnsafe("2000::/3")
const reservedWithin = networks("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

/** Whether the whole internet can reach an address. */
const isPublic = (address: NetAddress.IpAddress): boolean => {
  const canonical = NetAddress.toCanonical(address)
  return NetAddress.isIpv4Address(canonical)
    ? !reserved.some(IpNetwork.contains(canonical))
    : IpNetwork.contains(givenOut, canonical) && !reservedWithin.some(IpNetwork.contains(canonical))
}
