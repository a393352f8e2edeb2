/**
 * The definition of a setting, and decoders for the text formats of settings. A decoder returns undefined for an invalid value.
 */
import { Config, Effect, Redacted, Result, Schema, SchemaGetter, SchemaIssue } from "effect"
import { IpNetwork, NetAddress } from "effect/net"
import { networkFromString } from "../../contract/api/Network.ts"
import { addressOf } from "./DatabaseAddress.ts"

export interface Setting<A> {
  readonly name: string
  readonly config: Config.Config<A>
  /** The description of a valid value, after "must be". */
  readonly expected: string
}

export interface Decode<A> {
  (text: string): A | undefined
  /** The first faulty entry of a list. */
  readonly faultyEntry?: Decode<string>
}

/** Defines a setting: `decode` returns undefined for an invalid value; an unset variable gives the default. */
export const setting = <A>(
  name: string,
  expected: string,
  unset: NoInfer<A>,
  decode: Decode<NonNullable<A>>
): Setting<A> => ({
  name,
  expected,
  config: Config.schema(textTo(decode), name).pipe(Config.withDefault(unset as never)) as Config.Config<A>
})

/** Defines a setting that is undefined if its variable is unset. */
export const optional = <A extends {}>(name: string, expected: string, decode: Decode<A>) =>
  setting<A | undefined>(name, expected, undefined, decode as never)

const titleLengthMax = 100

/** The vendor's name for a web page. */
export const pageTitle = (name: string) =>
  optional<string>(name, `a text of at most ${titleLengthMax} characters`, (value) =>
    value.length <= titleLengthMax ? value : undefined
  )

/** Defines an optional setting whose value nothing prints. */
export const optionalSecret = (name: string, expected: string, isValid: (value: string) => boolean) =>
  optional(name, expected, (value) => (isValid(value) ? Redacted.make(value) : undefined))

/** The lines of the rules that are broken. */
export const linesOf = (rules: ReadonlyArray<readonly [isBroken: boolean, line: string]>): ReadonlyArray<string> =>
  rules.flatMap(([isBroken, line]) => (isBroken ? [line] : []))

/** The values of all valid settings by their keys, and a line for each invalid one. */
export const readEach = (settings: { readonly [key: string]: Setting<unknown> }) =>
  Effect.map(
    Effect.partition(Object.entries(settings), ([key, { name, config, expected }]) =>
      Effect.mapBoth(config, {
        onSuccess: (value) => [key, value] as const,
        onFailure: (error) => `${name} must be ${expected}${faultyEntryOf(error)}.`
      })
    ),
    ([valid, lines]) => ({ values: Object.fromEntries(valid) as Record<string, unknown>, lines })
  )

const textTo = <A>(decode: Decode<A>) =>
  Schema.String.pipe(
    Schema.decodeTo(
      Schema.declare((_): _ is A & {} => true),
      {
        decode: SchemaGetter.transformEffect((text: string) => {
          const value = decode(text.trim())
          if (value !== undefined) return Effect.succeed(value as A & {})
          const entry = decode.faultyEntry?.(text)
          return Effect.fail(
            new SchemaIssue.InvalidValue({ message: entry === undefined ? "" : `; "${entry}" is not` })
          )
        }),
        encode: SchemaGetter.forbidden(() => "Settings are only read")
      }
    )
  )

export const text: Decode<string> = (value) => value

export const exactly =
  <const A extends string>(...values: ReadonlyArray<A>): Decode<A> =>
  (value) =>
    values.find((each) => each === value)

/** A number from 0 to 1. */
export const fraction: Decode<number> = (value) =>
  /^\d*\.?\d+$/.test(value) && Number(value) <= 1 ? Number(value) : undefined

export const integer =
  (minimum: number, maximum: number): Decode<number> =>
  (value) =>
    /^\d{1,15}$/.test(value) && Number(value) >= minimum && Number(value) <= maximum ? Number(value) : undefined

export const oneOf =
  <const A extends Record<string, unknown>>(values: A): Decode<A[keyof A] & {}> =>
  (value) =>
    Object.hasOwn(values, value.toLowerCase()) ? (values[value.toLowerCase()] as A[keyof A] & {}) : undefined

/** A list separated by commas. */
const listOf = <A>(decode: Decode<A>): Decode<ReadonlyArray<A>> => {
  const entries = (value: string) => value.split(",").map((part) => part.trim())
  return Object.assign(
    (value: string) => {
      const decoded = entries(value).map(decode)
      return decoded.every((entry) => entry !== undefined) ? decoded : undefined
    },
    { faultyEntry: (value: string) => entries(value).find((entry) => decode(entry) === undefined) }
  )
}

const messages = SchemaIssue.makeFormatterStandardSchemaV1()

/** The end of the line about an invalid setting: the faulty entry of a list, otherwise nothing. */
const faultyEntryOf = ({ cause }: Config.ConfigError): string =>
  Schema.isSchemaError(cause) ? (messages(cause.issue).issues[0]?.message ?? "") : ""

const url =
  (...protocols: ReadonlyArray<string>) =>
  (value: string): URL | undefined => {
    const parsed = URL.parse(value)
    return parsed !== null && protocols.includes(parsed.protocol) && parsed.hostname !== "" ? parsed : undefined
  }

export const publicAddress: Decode<string> = (value) => {
  const parsed = url("http:", "https:")(value)
  const plain = parsed !== undefined && parsed.search === "" && parsed.hash === "" && parsed.username === ""
  return plain ? parsed.href.replace(/\/+$/, "") : undefined
}

export interface NodeAddress {
  readonly host: string
  readonly port: number
}

/** A host and a port. An IPv6 address is in brackets. */
export const nodeAddress: Decode<NodeAddress> = (value) => {
  const [, bracketed, plain, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/.exec(value) ?? []
  const port = Number(digits)
  const host = bracketed ?? plain
  return host !== undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined
}

/** libpq's words. `allow` is taken as `prefer`, and `verify-ca` as `verify-full`. */
const sslmodes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]

/** The database, which must take writes. */
export const databaseAddress = (value: string): boolean => {
  const { hosts, wanted = "any" } = replicaAddress(value) ? (addressOf(value) ?? { hosts: [] }) : { hosts: [] }
  // The first of several hosts could be one that takes no writes.
  return ["read-write", "primary"].includes(wanted) ? hosts.length > 0 : hosts.length === 1 && wanted === "any"
}

/** The database or a replica. */
export const replicaAddress = (value: string): boolean => {
  const [host] = addressOf(value)?.hosts ?? []
  if (host === undefined) return false
  // With a repeated parameter, two readers of the address could choose different values.
  const [sslmode = "disable", ...others] = new URL(host.url).searchParams.getAll("sslmode")
  return sslmodes.includes(sslmode) && others.length === 0
}

/** A network in CIDR notation; a single address is a network of one address. */
const network: Decode<IpNetwork.IpNetwork> = (value) =>
  Result.getOrUndefined(
    value.includes("/")
      ? networkFromString(value)
      : Result.flatMap(NetAddress.ipFromString(value), (parsed) => {
          const address = NetAddress.toCanonical(parsed)
          return IpNetwork.make(address, NetAddress.width(address))
        })
  )

export const networks: Decode<ReadonlyArray<IpNetwork.IpNetwork>> = listOf(network)

/** The URL of an OIDC issuer: https, or http on this machine. Not normalised, because it is compared with the issuer in tokens. */
export const issuerAddress: Decode<string> = (value) => {
  const parsed = url("http:", "https:")(value)
  const local = parsed !== undefined && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(parsed.hostname)
  const plain = parsed !== undefined && parsed.search === "" && parsed.hash === "" && parsed.username === ""
  return plain && (parsed.protocol === "https:" || local) ? value : undefined
}

/** Scopes of OpenID Connect (RFC 6749, section 3.3). */
export const scopeNames: Decode<ReadonlyArray<string>> = (value) => {
  const names = value.split(/ +/)
  return names.includes("openid") && names.every((name) => /^[!#-[\]-~]+$/.test(name)) ? names : undefined
}

/** Parameters that the console sets itself, or that would change how the issuer responds. */
const ownParameters =
  /^(client_id|client_secret|code_challenge|code_challenge_method|nonce|redirect_uri|request|request_uri|response_mode|response_type|scope|state)$/

/** Parameters of a query, with percent encoding. */
export const signInParameters: Decode<ReadonlyArray<readonly [name: string, value: string]>> = (value) => {
  const parameters = [...new URLSearchParams(value)]
  const isValid = parameters.every(([name, content]) => /^[\w.-]+$/.test(name) && content !== "")
  return isValid && !parameters.some(([name]) => ownParameters.test(name)) ? parameters : undefined
}

/** Origins as browsers and web views send them: of sites, of schemes of applications, and null for pages without an origin. */
export const origins: Decode<ReadonlyArray<string>> = listOf((part) =>
  url("http:", "https:")(part)?.origin === part || part === "null" || applicationOrigin.test(part) ? part : undefined
)
const applicationOrigin = /^(?!https?:|file:)[a-z][a-z0-9+.-]*:\/\/[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?(?::[1-9]\d{0,4})?$/

const rateMax = 10_000_000

/** Requests per minute; 0: no limit. */
export const rate = (name: string, unset: number) =>
  setting(name, `a whole number from 0 (no limit) to ${rateMax}`, unset, integer(0, rateMax))

export const flag: Decode<boolean> = oneOf({ true: true, false: false })

const delaysMax = 100
const delaySecondsMax = 604_800

const delays = listOf(integer(0, delaySecondsMax))

/** Seconds separated by commas. A leading 0 is ignored: it denotes the first attempt, which is always immediate. */
export const retryDelays: Decode<ReadonlyArray<number>> = Object.assign((value: string) => {
  const seconds = delays(value)
  if (seconds === undefined || seconds.length > delaysMax) return undefined
  return seconds[0] === 0 ? seconds.slice(1) : seconds
}, delays)
