/**
 * The definition of a setting, and decoders for the text formats of settings. A decoder returns undefined for an invalid value,
 * and wraps secrets so that nothing prints them.
 */
import { Config, Effect, Redacted, Result, Schema, SchemaGetter, SchemaIssue } from "effect"
import { IpNetwork, NetAddress } from "effect/net"
import { networkFromString } from "../api/Network.ts"

export interface Setting<A> {
  readonly name: string
  readonly config: Config.Config<A>
  /** The description of a valid value, after "must be". */
  readonly expected: string
}

type Decode<A> = (text: string) => A | undefined

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

const textTo = <A>(decode: Decode<A>) =>
  Schema.String.pipe(
    Schema.decodeTo(
      Schema.declare((_): _ is A & {} => true),
      {
        decode: SchemaGetter.transformEffect((text: string) => {
          const value = decode(text.trim())
          return value === undefined ? Effect.fail(new SchemaIssue.InvalidValue()) : Effect.succeed(value as A & {})
        }),
        encode: SchemaGetter.forbidden(() => "Settings are only read")
      }
    )
  )

export const text: Decode<string> = (value) => value

export const secret =
  (isValid: (value: string) => boolean): Decode<Redacted.Redacted<string>> =>
  (value) =>
    isValid(value) ? Redacted.make(value) : undefined

export const integer =
  (minimum: number, maximum: number): Decode<number> =>
  (value) =>
    /^\d{1,15}$/.test(value) && Number(value) >= minimum && Number(value) <= maximum ? Number(value) : undefined

export const oneOf =
  <const A extends Record<string, unknown>>(values: A): Decode<A[keyof A] & {}> =>
  (value) =>
    Object.hasOwn(values, value.toLowerCase()) ? (values[value.toLowerCase()] as A[keyof A] & {}) : undefined

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

/** libpq's words. `allow` is taken as `prefer`, and `verify-ca` as `verify-full`. */
const sslmodes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]

export const databaseAddress = (value: string): boolean => {
  const parsed = URL.parse(value)
  if (parsed === null || !["postgres:", "postgresql:"].includes(parsed.protocol)) return false
  // With two of them, two readers of the address could choose differently.
  const [sslmode = "disable", ...others] = parsed.searchParams.getAll("sslmode")
  return sslmodes.includes(sslmode) && others.length === 0
}

/** Networks in CIDR notation, separated by commas; a single address is a network of one address. */
export const networks: Decode<ReadonlyArray<IpNetwork.IpNetwork>> = (value) => {
  const parsed = value.split(",").map((part) => networkOf(part.trim()))
  return parsed.every((network) => network !== undefined) ? parsed : undefined
}

const networkOf = (value: string): IpNetwork.IpNetwork | undefined => {
  const network = value.includes("/")
    ? networkFromString(value)
    : Result.flatMap(NetAddress.ipFromString(value), (parsed) => {
        const address = NetAddress.toCanonical(parsed)
        return IpNetwork.make(address, NetAddress.width(address))
      })
  return Result.getOrUndefined(network)
}

/** The URL of an OIDC issuer: https, or http on this machine. Not normalised, because it is compared with tokens' issuer. */
export const issuerAddress: Decode<string> = (value) => {
  const parsed = url("http:", "https:")(value)
  const local = parsed !== undefined && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(parsed.hostname)
  const plain = parsed !== undefined && parsed.search === "" && parsed.hash === "" && parsed.username === ""
  return plain && (parsed.protocol === "https:" || local) ? value : undefined
}

/** Origins of web pages, separated by commas. */
export const origins: Decode<ReadonlyArray<string>> = (value) => {
  const parsed = value.split(",").map((part) => part.trim())
  return parsed.every((part) => url("http:", "https:")(part)?.origin === part) ? parsed : undefined
}

export const flag: Decode<boolean> = oneOf({ true: true, false: false })

const delaysMax = 100
const delaySecondsMax = 604_800

/** Seconds separated by commas. A leading 0 is ignored: it denotes the first attempt, which is always immediate. */
export const retryDelays: Decode<ReadonlyArray<number>> = (value) => {
  const delays = value.split(",").map((part) => integer(0, delaySecondsMax)(part.trim()))
  if (delays.length > delaysMax || !delays.every((delay) => delay !== undefined)) return undefined
  return delays[0] === 0 ? delays.slice(1) : delays
}
