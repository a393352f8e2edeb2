/**
 * Every setting of the service: its name in the environment, what it may hold, its default and unit.
 *
 * All are read before anything starts, and whatever is wrong with any of them is told at once, one line for each setting. No
 * line shows a secret. An empty variable counts as unset, because compose files leave unset ones behind like that.
 */
import {
  Config,
  ConfigProvider,
  Context,
  Effect,
  Layer,
  Redacted,
  Result,
  Schema,
  SchemaGetter,
  SchemaIssue
} from "effect"
import { IpNetwork, NetAddress } from "effect/net"

/** The settings cannot be used; one line for each wrong one. */
export class SettingsRefused extends Schema.TaggedError<SettingsRefused>()("SettingsRefused", {
  lines: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return this.lines.join("\n")
  }
}

interface Setting<A> {
  readonly name: string
  readonly config: Config.Config<A>
  /** What a right value is, after "must be". */
  readonly expected: string
}

type Decode<A> = (text: string) => A | undefined

/** One setting: `decode` gives undefined for text that is no right value; an unset variable gives the default. */
const setting = <A>(name: string, expected: string, unset: NoInfer<A>, decode: Decode<NonNullable<A>>): Setting<A> => ({
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

const text: Decode<string> = (value) => value

const secret =
  (isRight: (value: string) => boolean): Decode<Redacted.Redacted<string>> =>
  (value) =>
    isRight(value) ? Redacted.make(value) : undefined

const integer =
  (minimum: number, maximum: number): Decode<number> =>
  (value) =>
    /^\d{1,15}$/.test(value) && Number(value) >= minimum && Number(value) <= maximum ? Number(value) : undefined

const oneOf =
  <const A extends Record<string, unknown>>(values: A): Decode<A[keyof A] & {}> =>
  (value) =>
    Object.hasOwn(values, value.toLowerCase()) ? (values[value.toLowerCase()] as A[keyof A] & {}) : undefined

const url =
  (...protocols: ReadonlyArray<string>) =>
  (value: string): URL | undefined => {
    const parsed = URL.parse(value)
    return parsed !== null && protocols.includes(parsed.protocol) && parsed.hostname !== "" ? parsed : undefined
  }

const publicAddress: Decode<string> = (value) => {
  const parsed = url("http:", "https:")(value)
  const plain = parsed !== undefined && parsed.search === "" && parsed.hash === "" && parsed.username === ""
  return plain ? parsed.href.replace(/\/+$/, "") : undefined
}

const databaseAddress = (value: string): boolean => {
  const parsed = URL.parse(value)
  return parsed !== null && ["postgres:", "postgresql:"].includes(parsed.protocol)
}

/** Networks in CIDR notation, separated by commas; an address alone is a network of one. */
const networks: Decode<ReadonlyArray<IpNetwork.IpNetwork>> = (value) => {
  const parsed = value.split(",").map((part) => networkOf(part.trim()))
  return parsed.every((network) => network !== undefined) ? parsed : undefined
}

const networkOf = (value: string): IpNetwork.IpNetwork | undefined => {
  const network = value.includes("/")
    ? IpNetwork.fromString(value)
    : Result.flatMap(NetAddress.ipFromString(value), (address) => IpNetwork.make(address, NetAddress.width(address)))
  return Result.getOrUndefined(network)
}

const masterKeyShape = /^[A-Za-z0-9+/]{43}=$/
const headerText = /^[!-~]+$/
// Ten years: far enough to see every expiry, near enough for four-digit years.
const clockOffsetMax = 315_360_000

const logFormats = { pretty: "pretty", json: "json" } as const
const logLevels = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warning: "Warn",
  error: "Error",
  fatal: "Fatal",
  none: "None"
} as const

const settings = {
  /** Where the API listens. */
  host: setting("LICENSING_HOST", "an address or a host name to listen on", "127.0.0.1", text),
  port: setting("LICENSING_PORT", "a port number from 0 (any free one) to 65535", 8080, integer(0, 65_535)),
  /** A PostgreSQL of version 15 or newer; unset: the embedded one. */
  databaseUrl: setting<Redacted.Redacted<string> | undefined>(
    "LICENSING_DATABASE_URL",
    "a URL like postgres://user:password@host/name",
    undefined,
    secret(databaseAddress)
  ),
  /** The folder of the embedded database and of the generated master key. */
  dataDir: setting("LICENSING_DATA_DIR", "a folder", "./data", text),
  /** 32 bytes in base64: what secrets are encrypted under. */
  masterKey: setting<Redacted.Redacted<string> | undefined>(
    "LICENSING_MASTER_KEY",
    "base64 of exactly 32 bytes, as `openssl rand -base64 32` makes it",
    undefined,
    secret((value) => masterKeyShape.test(value))
  ),
  /** The first admin token; unset: one is made and printed once. */
  bootstrapToken: setting<Redacted.Redacted<string> | undefined>(
    "LICENSING_BOOTSTRAP_TOKEN",
    "at least 32 visible ASCII characters",
    undefined,
    secret((value) => value.length >= 32 && headerText.test(value))
  ),
  /** The public address in documents and download links; unset: taken from the request. No slash at its end. */
  baseUrl: setting<string | undefined>(
    "LICENSING_BASE_URL",
    "an http or https address without query, as https://licenses.example.com",
    undefined,
    publicAddress
  ),
  /** The proxies whose X-Forwarded-For is believed. */
  trustedProxies: setting<ReadonlyArray<IpNetwork.IpNetwork>>(
    "LICENSING_TRUSTED_PROXIES",
    "networks in CIDR notation separated by commas, as 10.0.0.0/8,fd00::/8",
    [],
    networks
  ),
  /** What /metrics asks for as bearer token; unset: /metrics is open. */
  metricsToken: setting<Redacted.Redacted<string> | undefined>(
    "LICENSING_METRICS_TOKEN",
    "visible ASCII characters",
    undefined,
    secret((value) => headerText.test(value))
  ),
  /** Unset: pretty on a terminal, else json. */
  logFormat: setting<"pretty" | "json" | undefined>(
    "LICENSING_LOG_FORMAT",
    "pretty or json",
    undefined,
    oneOf(logFormats)
  ),
  logLevel: setting<(typeof logLevels)[keyof typeof logLevels]>(
    "LICENSING_LOG_LEVEL",
    `one of ${Object.keys(logLevels).join(", ")}`,
    "Info",
    oneOf(logLevels)
  ),
  /** Seconds by which the service's clock runs ahead, for rehearsals. */
  clockOffsetSeconds: setting(
    "LICENSING_CLOCK_OFFSET_SECONDS",
    `a whole number of seconds from 0 to ${clockOffsetMax}`,
    0,
    integer(0, clockOffsetMax)
  ),
  /** Seconds between two sweeps over what time has changed. */
  sweepSeconds: setting("LICENSING_SWEEP_SECONDS", "a whole number of seconds from 1 to 86400", 60, integer(1, 86_400))
}

type Values = { readonly [K in keyof typeof settings]: (typeof settings)[K] extends Setting<infer A> ? A : never }

const readEach = Effect.partition(Object.entries<Setting<unknown>>(settings), ([key, { name, config, expected }]) =>
  Effect.mapBoth(config, {
    onSuccess: (value) => [key, value] as const,
    onFailure: () => `${name} must be ${expected}.`
  })
)

const read = Effect.gen(function* () {
  const [right, wrong] = yield* readEach
  const values = Object.fromEntries(right) as unknown as Values
  // Nobody finds a key that was made in a data folder which the next container does not have.
  const keyless = "masterKey" in values && values.masterKey === undefined && values.databaseUrl !== undefined
  const lines = keyless ? [...wrong, masterKeyMissing] : wrong
  return lines.length === 0 ? values : yield* new SettingsRefused({ lines })
})

const masterKeyMissing =
  "LICENSING_MASTER_KEY must be set together with LICENSING_DATABASE_URL: base64 of exactly 32 bytes, as `openssl rand -base64 32` makes it."

export class Settings extends Context.Service<Settings, Values>()("licensing/Config/Settings") {
  /** From the environment, or wherever the ConfigProvider reads. Fails with every wrong setting at once. */
  static readonly layer = Layer.effect(Settings, read)

  /** What holds where nothing is set, but for the given values. */
  static readonly layerTest = (values: Partial<Values> = {}) =>
    Layer.effect(
      Settings,
      read.pipe(
        Effect.map((defaults) => ({ ...defaults, ...values })),
        Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnvRecord({})),
        Effect.orDie
      )
    )
}
