/**
 * Every setting of the service: its environment variable, its allowed values, its default and unit.
 *
 * All settings are read before anything starts, and all errors are reported together, one line per setting. No line contains a
 * secret. An empty variable counts as unset, because compose files pass unset variables as empty.
 */
import { ConfigProvider, Context, Effect, Layer, Schema } from "effect"
import type { IpNetwork } from "effect/net"
import { consoleSettings } from "./ConsoleSettings.ts"
import { contradictions, missingKey } from "./Contradictions.ts"
import { ratesDefault, webhookRetrySecondsDefault } from "./Defaults.ts"
import { mailSettings } from "./MailSettings.ts"
import { portalSettings } from "./PortalSettings.ts"
import {
  databaseAddress,
  flag,
  integer,
  issuerAddress,
  networks,
  nodeAddress,
  oneOf,
  optional,
  optionalSecret,
  origins,
  publicAddress,
  rate,
  readEach,
  replicaAddress,
  retryDelays,
  type Setting,
  setting,
  text
} from "./Setting.ts"
import { readTelemetrySettings, type TelemetrySettings } from "./TelemetrySettings.ts"
import { unknownAmong } from "./UnknownSettings.ts"

/** The settings are invalid; one line per invalid setting. */
class SettingsRefused extends Schema.TaggedError<SettingsRefused>()("SettingsRefused", {
  lines: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return this.lines.join("\n")
  }
}

const masterKeyShape = /^[A-Za-z0-9+/]{43}=$/
const expectedKey = "base64 of exactly 32 bytes, as `openssl rand -base64 32` makes it"
const headerText = /^[!-~]+$/
// Ten years reach beyond most expiries, and keep years at four digits.
const clockOffsetMax = 315_360_000

const expectedReplica =
  "a URL like postgres://user:password@host/name, with an sslmode, if it has one, of disable, allow, prefer, require, " +
  "verify-ca or verify-full"
const expectedDatabase = `${expectedReplica}; several hosts, separated by commas, need target_session_attrs=read-write`

const expectedRequests = "a whole number from 1 to 1000000"
const requestsMax = 1_000_000

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

const retentionDays = (name: `LICENSING_${string}`) =>
  setting(name, "a whole number of days from 0 (kept forever) to 36500", 0, integer(0, 36_500))

const settings = {
  /** The address and port that the API listens on. */
  host: setting("LICENSING_HOST", "an address or a host name to listen on", "127.0.0.1", text),
  port: setting("LICENSING_PORT", "a port number from 0 (any free one) to 65535", 8080, integer(0, 65_535)),
  /** A PostgreSQL server of version 15 or newer; unset: the embedded one. */
  databaseUrl: optionalSecret("LICENSING_DATABASE_URL", expectedDatabase, databaseAddress),
  /** A replica of the database that reports read from; unset: the database itself. */
  reportsDatabaseUrl: optionalSecret("LICENSING_REPORTS_DATABASE_URL", expectedReplica, replicaAddress),
  /** The folder of the embedded database and of the generated master key. */
  dataDir: setting("LICENSING_DATA_DIR", "a folder", "./data", text),
  /** 32 bytes in base64: the key that encrypts secrets. */
  masterKey: optionalSecret("LICENSING_MASTER_KEY", expectedKey, (value) => masterKeyShape.test(value)),
  /** The next master key. It decrypts, too; it encrypts as soon as `master-key rotate` has begun. */
  masterKeyNext: optionalSecret("LICENSING_MASTER_KEY_NEXT", expectedKey, (value) => masterKeyShape.test(value)),
  /** The first admin token; unset: a token is generated, and printed until an API key is used. */
  bootstrapToken: optionalSecret(
    "LICENSING_BOOTSTRAP_TOKEN",
    "at least 32 visible ASCII characters",
    (value) => value.length >= 32 && headerText.test(value)
  ),
  /** The public address in documents and download links; unset: taken from the request. No slash at its end. */
  baseUrl: optional(
    "LICENSING_BASE_URL",
    "an http or https address without query, as https://licenses.example.com",
    publicAddress
  ),
  /** The proxies whose X-Forwarded-For or Forwarded is trusted. */
  trustedProxies: setting<ReadonlyArray<IpNetwork.IpNetwork>>(
    "LICENSING_TRUSTED_PROXIES",
    "networks in CIDR notation without host bits separated by commas, as 10.0.0.0/8,fd00::/8",
    [],
    networks
  ),
  /** The bearer token that /metrics requires; unset: /metrics is public. */
  metricsToken: optionalSecret("LICENSING_METRICS_TOKEN", "visible ASCII characters", (value) =>
    headerText.test(value)
  ),
  /** A request that takes longer is answered with 503. */
  requestTimeoutSeconds: setting("LICENSING_REQUEST_TIMEOUT_SECONDS", "seconds from 1 to 300", 10, integer(1, 300)),
  /** Requests in any minute, 0 = no limit: runtime requests per license and address, activations per license, requests per token. */
  rateRuntime: rate("LICENSING_RATE_RUNTIME", ratesDefault.runtime),
  rateActivation: rate("LICENSING_RATE_ACTIVATION", ratesDefault.activation),
  rateManagement: rate("LICENSING_RATE_MANAGEMENT", ratesDefault.management),
  /** Failed credentials per address and minute. Further ones are refused with 429. */
  rateFailures: rate("LICENSING_RATE_FAILURES", ratesDefault.failures),
  /** Concurrent requests; further ones are refused with 503. */
  requestsMax: setting("LICENSING_REQUESTS_MAX", expectedRequests, 4_096, integer(1, requestsMax)),
  /** Concurrent requests of one address. */
  requestsPerAddress: setting("LICENSING_REQUESTS_PER_ADDRESS", expectedRequests, 1_024, integer(1, requestsMax)),
  /** Connections of one address; further ones are closed. Trusted proxies have no limit. */
  connectionsPerAddress: setting(
    "LICENSING_CONNECTIONS_PER_ADDRESS",
    "a whole number from 0 (no limit) to 1000000",
    2_048,
    integer(0, requestsMax)
  ),
  /** Seconds that a stop waits for the requests in progress. */
  drainSeconds: setting("LICENSING_DRAIN_SECONDS", "a whole number of seconds from 0 to 3600", 5, integer(0, 3_600)),
  /** Whether this node joins a cluster, in which one node decides all commands of a license. */
  cluster: setting<boolean>("LICENSING_CLUSTER", "true or false", false, flag),
  /** Where this node listens for other nodes. */
  clusterListen: optional(
    "LICENSING_CLUSTER_LISTEN",
    "an address and a port of their own, as 0.0.0.0:8081",
    nodeAddress
  ),
  /** The address at which other nodes connect to this one. */
  clusterAddress: optional(
    "LICENSING_CLUSTER_ADDRESS",
    "this node's own host name or address and its port, as 10.0.0.5:8081",
    nodeAddress
  ),
  /** The OIDC issuer whose tokens the management API accepts; unset: none. */
  oidcIssuer: optional(
    "LICENSING_OIDC_ISSUER",
    "the issuer's address, https (or http on this machine), exactly as its tokens name it",
    issuerAddress
  ),
  /** The audience that those tokens must have. */
  oidcAudience: optional("LICENSING_OIDC_AUDIENCE", "a text", text),
  /** The claim that contains their scopes: a space-separated text, or an array. */
  oidcScopeClaim: setting("LICENSING_OIDC_SCOPE_CLAIM", "the name of a claim", "scope", text),
  /** The claim that contains the products that they are limited to; unset: no token is limited. */
  oidcProductsClaim: optional("LICENSING_OIDC_PRODUCTS_CLAIM", "the name of a claim", text),
  /** Pages of these origins may call the API from a browser or a web view; unset: none. */
  corsOrigins: setting<ReadonlyArray<string>>(
    "LICENSING_CORS_ORIGINS",
    "origins separated by commas, as https://console.example.com,app://editor, or null",
    [],
    origins
  ),
  ...consoleSettings,
  ...mailSettings,
  ...portalSettings,
  /** For development: webhook endpoints may use http and be on this machine. */
  webhookAllowLocal: setting<boolean>("LICENSING_WEBHOOK_ALLOW_LOCAL", "true or false", false, flag),
  /** Private networks that webhook deliveries may reach. */
  webhookAllowCidrs: setting<ReadonlyArray<IpNetwork.IpNetwork>>(
    "LICENSING_WEBHOOK_ALLOW_CIDRS",
    "networks in CIDR notation without host bits separated by commas, as 10.1.2.0/24,fd00::/8",
    [],
    networks
  ),
  /** Seconds between a failed attempt of a webhook delivery and the next attempt; the first attempt is immediate. */
  webhookRetrySeconds: setting<ReadonlyArray<number>>(
    "LICENSING_WEBHOOK_RETRY_SECONDS",
    "up to 100 whole numbers of seconds separated by commas, each up to 604800, as 5,300,1800",
    webhookRetrySecondsDefault,
    retryDelays
  ),
  /** Unset: pretty on a terminal, otherwise json. */
  logFormat: optional("LICENSING_LOG_FORMAT", "pretty or json", oneOf(logFormats)),
  logLevel: setting<(typeof logLevels)[keyof typeof logLevels]>(
    "LICENSING_LOG_LEVEL",
    `one of ${Object.keys(logLevels).join(", ")}`,
    "Info",
    oneOf(logLevels)
  ),
  /** Seconds that are added to the service's clock, for rehearsals. */
  clockOffsetSeconds: setting(
    "LICENSING_CLOCK_OFFSET_SECONDS",
    `a whole number of seconds from 0 to ${clockOffsetMax}`,
    0,
    integer(0, clockOffsetMax)
  ),
  /** Days until exports of reports are deleted. */
  exportRetentionDays: setting(
    "LICENSING_EXPORT_RETENTION_DAYS",
    "a whole number of days from 1 to 3650",
    30,
    integer(1, 3_650)
  ),
  /** A font for characters in pdf exports that the built-in font lacks, such as Chinese; unset: they appear as a replacement mark. */
  reportsFont: optional(
    "LICENSING_REPORTS_FONT",
    "a font file, of a collection with # and the font's PostScript name, as /fonts/Noto.ttc#NotoSansCJKsc-Regular",
    text
  ),
  /** Days for which the activities feed contains refused runtime calls. Events stay in it permanently. */
  activityRetentionDays: setting(
    "LICENSING_ACTIVITY_RETENTION_DAYS",
    "a whole number of days from 1 to 3650",
    90,
    integer(1, 3_650)
  ),
  /** Days until the hourly counts of validations are deleted. */
  validationRetentionDays: setting(
    "LICENSING_VALIDATION_RETENTION_DAYS",
    "a whole number of days from 1 to 3650",
    400,
    integer(1, 3_650)
  ),
  /** Days after which events leave the database by whole partitions; 0 = never. Consumptions stay as long as the ledger. */
  eventRetentionDays: retentionDays("LICENSING_EVENT_RETENTION_DAYS"),
  /** The same for the rows of the usage ledger. */
  ledgerRetentionDays: retentionDays("LICENSING_LEDGER_RETENTION_DAYS"),
  /** Whether partitions past their retention are dropped. Otherwise they are detached and stay as tables. */
  retentionDrop: setting<boolean>("LICENSING_RETENTION_DROP", "true or false", false, flag),
  /** Seconds between two sweeps for expired licenses, leases and devices. */
  sweepSeconds: setting("LICENSING_SWEEP_SECONDS", "a whole number of seconds from 1 to 86400", 60, integer(1, 86_400))
}

/** One line for each LICENSING_ variable that is not a setting. Such a variable is ignored, and often a misspelled name. */
export const unknownSettings = unknownAmong(Object.values(settings).map(({ name }) => name))

type Values = { readonly [K in keyof typeof settings]: (typeof settings)[K] extends Setting<infer A> ? A : never } & {
  /** Undefined if nothing is exported. */
  readonly telemetry: TelemetrySettings | undefined
}

const read = Effect.gen(function* () {
  const { lines: invalid, values: valid } = yield* readEach(settings)
  const telemetry = yield* readTelemetrySettings
  const values = { ...valid, telemetry: telemetry.settings } as unknown as Values
  const contradicting = invalid.length === 0 ? contradictions(values) : missingKey(values)
  const lines = [...invalid, ...contradicting, ...telemetry.lines]
  // A setting may be missing because its name is misspelled.
  return lines.length === 0 ? values : yield* new SettingsRefused({ lines: [...lines, ...(yield* unknownSettings)] })
})

export class Settings extends Context.Service<Settings, Values>()("licensing/platform/config/Settings") {
  /** From the ConfigProvider, by default the environment. Fails with all invalid settings at once. */
  static readonly layer = Layer.effect(Settings, read)

  /** The defaults, with the given values. */
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
