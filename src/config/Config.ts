/**
 * Every setting of the service: its name in the environment, what it may hold, its default and unit.
 *
 * All are read before anything starts, and whatever is wrong with any of them is told at once, one line for each setting. No
 * line shows a secret. An empty variable counts as unset, because compose files leave unset ones behind like that.
 */
import { ConfigProvider, Context, Effect, Layer, type Redacted, Schema } from "effect"
import type { IpNetwork } from "effect/net"
import {
  databaseAddress,
  flag,
  integer,
  issuerAddress,
  networks,
  oneOf,
  origins,
  publicAddress,
  retryDelays,
  type Setting,
  secret,
  setting,
  text
} from "./Setting.ts"

/** The settings cannot be used; one line for each wrong one. */
class SettingsRefused extends Schema.TaggedError<SettingsRefused>()("SettingsRefused", {
  lines: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return this.lines.join("\n")
  }
}

const masterKeyShape = /^[A-Za-z0-9+/]{43}=$/
const headerText = /^[!-~]+$/
// Ten years: far enough to see every expiry, near enough for four-digit years.
const clockOffsetMax = 315_360_000

const expectedDatabase =
  "a URL like postgres://user:password@host/name, with an sslmode, if it has one, of disable, allow, prefer, require, " +
  "verify-ca or verify-full"

const expectedRate = "a whole number from 0 (no limit) to 10000000"
const rateMax = 10_000_000

const logFormats = { pretty: "pretty", json: "json" } as const
const logLevels = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warn: "Warn",
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
    expectedDatabase,
    undefined,
    secret(databaseAddress)
  ),
  /** Where reports read, a replica of the database; unset: the database itself. */
  reportsDatabaseUrl: setting<Redacted.Redacted<string> | undefined>(
    "LICENSING_REPORTS_DATABASE_URL",
    expectedDatabase,
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
  /** The key that takes the master key's place: opened with it too, and sealed with it once `master-key rotate` has begun. */
  masterKeyNext: setting<Redacted.Redacted<string> | undefined>(
    "LICENSING_MASTER_KEY_NEXT",
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
  /** The proxies whose X-Forwarded-For or Forwarded is believed. */
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
  /** Requests in any minute, 0 = no limit: of a license from one address, activations of a license, of a management token. */
  rateRuntime: setting("LICENSING_RATE_RUNTIME", expectedRate, 3_000, integer(0, rateMax)),
  rateActivation: setting("LICENSING_RATE_ACTIVATION", expectedRate, 120, integer(0, rateMax)),
  rateManagement: setting("LICENSING_RATE_MANAGEMENT", expectedRate, 6_000, integer(0, rateMax)),
  /** Failed credentials of one address in any minute that are told why; further ones are answered 429. */
  rateFailures: setting("LICENSING_RATE_FAILURES", expectedRate, 30, integer(0, rateMax)),
  /** The OIDC issuer whose tokens the management API takes; unset: none. */
  oidcIssuer: setting<string | undefined>(
    "LICENSING_OIDC_ISSUER",
    "the issuer's address, https (or http on this machine), exactly as its tokens name it",
    undefined,
    issuerAddress
  ),
  /** The audience that those tokens are made for. */
  oidcAudience: setting<string | undefined>("LICENSING_OIDC_AUDIENCE", "a text", undefined, text),
  /** The claim that holds their scopes: a text with spaces between them, or an array. */
  oidcScopeClaim: setting("LICENSING_OIDC_SCOPE_CLAIM", "the name of a claim", "scope", text),
  /** Web pages of these origins may call the API from a browser; unset: none. */
  corsOrigins: setting<ReadonlyArray<string>>(
    "LICENSING_CORS_ORIGINS",
    "origins separated by commas, as https://console.example.com",
    [],
    origins
  ),
  /** Development: webhook endpoints may be http and on this machine. */
  webhookAllowLocal: setting<boolean>("LICENSING_WEBHOOK_ALLOW_LOCAL", "true or false", false, flag),
  /** Networks of the operator's own that webhook deliveries may reach, though they are not public. */
  webhookAllowCidrs: setting<ReadonlyArray<IpNetwork.IpNetwork>>(
    "LICENSING_WEBHOOK_ALLOW_CIDRS",
    "networks in CIDR notation separated by commas, as 10.1.2.0/24,fd00::/8",
    [],
    networks
  ),
  /** Seconds before each attempt of a webhook delivery after the one before it has failed; the first is made at once. */
  webhookRetrySeconds: setting<ReadonlyArray<number>>(
    "LICENSING_WEBHOOK_RETRY_SECONDS",
    "up to 100 whole numbers of seconds separated by commas, each up to 604800, as 5,300,1800",
    [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400],
    retryDelays
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
  /** Days for which exports of reports are kept. */
  exportRetentionDays: setting(
    "LICENSING_EXPORT_RETENTION_DAYS",
    "a whole number of days from 1 to 3650",
    30,
    integer(1, 3_650)
  ),
  /** A font for what is printed in pdf exports and ours lacks, as Chinese names; unset: such characters are shown as a mark. */
  reportsFont: setting<string | undefined>(
    "LICENSING_REPORTS_FONT",
    "a font file, of a collection with # and the font's PostScript name, as /fonts/Noto.ttc#NotoSansCJKsc-Regular",
    undefined,
    text
  ),
  /** Days for which the activities feed shows refused runtime calls. What was done is shown for ever, as events are. */
  activityRetentionDays: setting(
    "LICENSING_ACTIVITY_RETENTION_DAYS",
    "a whole number of days from 1 to 3650",
    90,
    integer(1, 3_650)
  ),
  /** Days for which validations are counted by the hour. */
  validationRetentionDays: setting(
    "LICENSING_VALIDATION_RETENTION_DAYS",
    "a whole number of days from 1 to 3650",
    400,
    integer(1, 3_650)
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
  const lines = [...wrong, ...(wrong.length === 0 ? contradictions(values) : missingKey(values))]
  return lines.length === 0 ? values : yield* new SettingsRefused({ lines })
})

/** What settings that are right by themselves are not together. */
const contradictions = (values: Values): ReadonlyArray<string> => [
  ...missingKey(values),
  ...(values.oidcIssuer !== undefined && values.oidcAudience === undefined
    ? [
        "LICENSING_OIDC_AUDIENCE must be set together with LICENSING_OIDC_ISSUER: the audience that tokens are made for."
      ]
    : []),
  ...(values.oidcIssuer === undefined && values.oidcAudience !== undefined
    ? ["LICENSING_OIDC_ISSUER must be set together with LICENSING_OIDC_AUDIENCE: the address of the issuer."]
    : [])
]

// Nobody finds a key that was made in a data folder which the next container does not have.
const missingKey = (values: Values): ReadonlyArray<string> =>
  "masterKey" in values && values.masterKey === undefined && values.databaseUrl !== undefined
    ? [
        "LICENSING_MASTER_KEY must be set together with LICENSING_DATABASE_URL: base64 of exactly 32 bytes, as `openssl rand -base64 32` makes it."
      ]
    : []

export class Settings extends Context.Service<Settings, Values>()("licensing/config/Settings") {
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
