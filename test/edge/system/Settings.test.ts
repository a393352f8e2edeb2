import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted } from "effect"
import { IpNetwork } from "effect/net"
import { Settings } from "../../../src/platform/config/Config.ts"

const masterKey = Buffer.alloc(32).toString("base64")

const read = (environment: Record<string, string>) =>
  Settings.pipe(
    Effect.provide(Settings.layer),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnvRecord(environment))
  )

const wrong: Record<string, ReadonlyArray<string>> = {
  LICENSING_WEBHOOK_ALLOW_LOCAL: ["yes", "1"],
  LICENSING_WEBHOOK_ALLOW_CIDRS: ["10.0.0.1/8", "internal", "10.0.0.0/8,"],
  LICENSING_WEBHOOK_RETRY_SECONDS: ["5,", "soon", "1.5", "-1", "604801", "5;6"],
  LICENSING_PORT: ["abc", "-1", "65536", "80.5", "8080x"],
  LICENSING_DATABASE_URL: [
    "mysql://secret@db/x",
    "secret",
    "postgres://u:secret@db/x?sslmode=requir",
    "postgres://u:secret@db/x?sslmode=",
    "postgres://u:secret@db/x?sslmode=require&sslmode=disable"
  ],
  LICENSING_REPORTS_DATABASE_URL: ["secret", "postgres://u:secret@db/x?sslmode=REQUIRE"],
  LICENSING_MASTER_KEY: ["secret", Buffer.alloc(31).toString("base64"), Buffer.alloc(33).toString("base64")],
  LICENSING_BOOTSTRAP_TOKEN: ["secret", "with space".padEnd(40)],
  LICENSING_BASE_URL: [
    "licenses.example.com",
    "ftp://example.com",
    "https://example.com/?a=1",
    "https://user:secret@example.com"
  ],
  LICENSING_TRUSTED_PROXIES: ["10.0.0.0/33", "everything", "10.0.0.1/8", "10.0.0.0/8,"],
  LICENSING_LOG_FORMAT: ["xml"],
  LICENSING_LOG_LEVEL: ["loud"],
  LICENSING_CLOCK_OFFSET_SECONDS: ["-1", "1.5", "999999999999"],
  LICENSING_SWEEP_SECONDS: ["0", "86401", "often"],
  LICENSING_MASTER_KEY_NEXT: ["secret", Buffer.alloc(31).toString("base64")],
  LICENSING_RATE_RUNTIME: ["-1", "1.5", "10000001", "many"],
  LICENSING_RATE_ACTIVATION: ["x"],
  LICENSING_RATE_MANAGEMENT: ["x"],
  LICENSING_RATE_FAILURES: ["x"],
  LICENSING_OIDC_ISSUER: [
    "issuer",
    "http://issuer.example.com",
    "https://issuer.example.com/?a=1",
    "https://u:p@x.example"
  ],
  LICENSING_CONSOLE_OIDC_SCOPES: ["profile", "openid,profile"],
  LICENSING_CONSOLE_OIDC_PARAMETERS: ["state=1", "resource=a&redirect_uri=b", "resource"],
  LICENSING_SMTP_URL: [
    ...["secret", "http://host", "smtp://", "smtp://host/path", "smtp://secret@host", "smtps://host?tls=none"],
    ...["smtp://host?tls=maybe", "smtp://user:%0d%0asecret@host", "smtp://user:secret%ff@host"]
  ],
  LICENSING_MAIL_FROM: ["Example", "Example <licenses>", "a@example.com\nBcc: b@example.com", "a@b,c@d"],
  LICENSING_MAIL_LANGUAGE: ["e", "german!", "de_DE"],
  LICENSING_PORTAL_LOGO: ["logo", "/etc/licensing/logo.gif", "logo.svg/"],
  LICENSING_CORS_ORIGINS: [
    ...["*", "console.example.com", "https://a.example.com/", "https://a.example.com,", "HTTPS://a.example.com"],
    ...["app://", "app://editor/", "app://editor?", "app://user@editor", "file://", "file:///", "NULL", "app:editor"]
  ]
}

const originsOfAll = [
  ...["https://console.example.com", "http://localhost:3000", "app://editor", "tauri://localhost"],
  ...["capacitor://localhost", "chrome-extension://abcdefghijklmnopabcdefghijklmnop", "null"]
]

const signIn = ["openid", "offline_access", "resource", "https://licenses.example.com", "prompt", "select_account"]

describe("Settings", () => {
  it.effect("all have a default or are optional", () =>
    Effect.gen(function* () {
      const settings = yield* read({})
      assert.strictEqual(settings.host, "127.0.0.1")
      assert.strictEqual(settings.port, 8080)
      assert.strictEqual(settings.dataDir, "./data")
      assert.strictEqual(settings.databaseUrl, undefined)
      assert.deepStrictEqual(settings.trustedProxies, [])
      assert.strictEqual(settings.logLevel, "Info")
      assert.strictEqual(settings.clockOffsetSeconds, 0)
      assert.strictEqual(settings.sweepSeconds, 60)
      assert.deepStrictEqual([settings.activityRetentionDays, settings.validationRetentionDays], [90, 400])
      const { rateActivation, rateFailures, rateManagement, rateRuntime } = settings
      assert.deepStrictEqual([rateRuntime, rateActivation, rateManagement, rateFailures], [3_000, 120, 6_000, 30])
      assert.deepStrictEqual([settings.oidcIssuer, settings.oidcScopeClaim], [undefined, "scope"])
      assert.deepStrictEqual(settings.corsOrigins, [])
      assert.deepStrictEqual([settings.webhookAllowLocal, settings.webhookAllowCidrs], [false, []])
      assert.deepStrictEqual(settings.webhookRetrySeconds, [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400])
    })
  )

  it.effect("an empty variable counts as unset", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* read({ LICENSING_PORT: "", LICENSING_DATABASE_URL: "" }), yield* read({}))
    })
  )

  it.effect("valid values are read", () =>
    Effect.gen(function* () {
      const settings = yield* read({
        LICENSING_HOST: "0.0.0.0",
        LICENSING_PORT: "0",
        LICENSING_DATABASE_URL: "postgres://user:secret@db/licensing",
        LICENSING_MASTER_KEY: masterKey,
        LICENSING_BOOTSTRAP_TOKEN: "x".repeat(32),
        LICENSING_BASE_URL: "https://licenses.example.com/",
        LICENSING_TRUSTED_PROXIES: "10.0.0.0/8, ::1, ::ffff:192.0.2.0/120, ::ffff:198.51.100.7",
        LICENSING_LOG_FORMAT: "json",
        LICENSING_LOG_LEVEL: "Warning",
        LICENSING_CLOCK_OFFSET_SECONDS: "86400",
        LICENSING_SWEEP_SECONDS: "1",
        LICENSING_MASTER_KEY_NEXT: Buffer.alloc(32, 1).toString("base64"),
        LICENSING_RATE_RUNTIME: "0",
        LICENSING_RATE_FAILURES: "10000000",
        LICENSING_OIDC_ISSUER: "https://issuer.example.com/realm/",
        LICENSING_OIDC_AUDIENCE: "https://licenses.example.com",
        LICENSING_OIDC_SCOPE_CLAIM: "permissions",
        LICENSING_OIDC_PRODUCTS_CLAIM: "products",
        LICENSING_CONSOLE_OIDC_CLIENT_ID: "console",
        LICENSING_CONSOLE_OIDC_SCOPES: "openid  offline_access",
        LICENSING_CONSOLE_OIDC_PARAMETERS: "resource=https%3A%2F%2Flicenses.example.com&prompt=select_account",
        LICENSING_CORS_ORIGINS: originsOfAll.join(", "),
        LICENSING_WEBHOOK_ALLOW_LOCAL: "TRUE",
        LICENSING_WEBHOOK_ALLOW_CIDRS: "10.1.0.0/16,fd00:1::/32",
        LICENSING_WEBHOOK_RETRY_SECONDS: "0, 1,30"
      })
      assert.strictEqual(settings.port, 0)
      assert.strictEqual(Redacted.value(settings.databaseUrl!), "postgres://user:secret@db/licensing")
      assert.strictEqual(settings.baseUrl, "https://licenses.example.com")
      assert.deepStrictEqual(settings.trustedProxies.map(IpNetwork.format), [
        "10.0.0.0/8",
        "::1/128",
        "192.0.2.0/24",
        "198.51.100.7/32"
      ])
      assert.strictEqual(settings.logLevel, "Warn")
      assert.strictEqual(settings.clockOffsetSeconds, 86_400)
      assert.deepStrictEqual(
        [settings.rateRuntime, settings.rateActivation, settings.rateFailures],
        [0, 120, 10_000_000]
      )
      assert.strictEqual(settings.oidcIssuer, "https://issuer.example.com/realm/", "as tokens say it")
      assert.deepStrictEqual([settings.oidcScopeClaim, settings.oidcProductsClaim], ["permissions", "products"])
      assert.deepStrictEqual(settings.consoleScopes.concat(settings.consoleParameters.flat()), signIn)
      assert.deepStrictEqual(settings.corsOrigins, originsOfAll)
      assert.isTrue(settings.webhookAllowLocal)
      assert.deepStrictEqual(settings.webhookAllowCidrs.map(IpNetwork.format), ["10.1.0.0/16", "fd00:1::/32"])
      // The first attempt is immediate; a leading 0 represents it.
      assert.deepStrictEqual(settings.webhookRetrySeconds, [1, 30])
      for (const secret of ["secret", masterKey, "x".repeat(32)]) assert.notInclude(JSON.stringify(settings), secret)
    })
  )

  for (const [name, values] of Object.entries(wrong)) {
    it.effect(`an invalid ${name} is reported in one line without secrets`, () =>
      Effect.forEach(values, (value) =>
        Effect.map(Effect.flip(read({ [name]: value })), ({ lines }) => {
          assert.strictEqual(lines.length, 1, value)
          assert.match(lines[0]!, new RegExp(`^${name} must be .*\\.$`))
          assert.notInclude(lines[0], "secret")
        })
      )
    )
  }

  it.effect("issuer and audience need each other; a local issuer needs no TLS", () =>
    Effect.gen(function* () {
      const audience = yield* Effect.flip(read({ LICENSING_OIDC_ISSUER: "https://issuer.example.com" }))
      assert.match(audience.lines.join(), /^LICENSING_OIDC_AUDIENCE must be set together with LICENSING_OIDC_ISSUER: /)
      const issuer = yield* Effect.flip(read({ LICENSING_OIDC_AUDIENCE: "licenses" }))
      assert.match(issuer.lines.join(), /^LICENSING_OIDC_ISSUER must be set together with LICENSING_OIDC_AUDIENCE: /)
      const client = yield* Effect.flip(read({ LICENSING_CONSOLE_OIDC_CLIENT_ID: "console" }))
      assert.match(client.lines.join(), /^LICENSING_OIDC_ISSUER must be set together with LICENSING_CONSOLE_OIDC/)
      for (const local of ["http://localhost:3000", "http://127.0.0.1:3000/realm", "http://[::1]"]) {
        const settings = yield* read({ LICENSING_OIDC_ISSUER: local, LICENSING_OIDC_AUDIENCE: "licenses" })
        assert.strictEqual(settings.oidcIssuer, local)
      }
    })
  )

  it.effect("all invalid values are reported at once", () =>
    Effect.gen(function* () {
      const { lines } = yield* Effect.flip(
        read({ LICENSING_PORT: "x", LICENSING_LOG_LEVEL: "x", LICENSING_DATABASE_URL: "postgres://db/x" })
      )
      assert.deepStrictEqual(
        lines.map((line) => line.split(" ")[0]),
        ["LICENSING_PORT", "LICENSING_LOG_LEVEL", "LICENSING_MASTER_KEY"]
      )
    })
  )
})

describe("The address of the database", () => {
  it.effect("each of libpq's words for sslmode is taken", () =>
    Effect.forEach(["disable", "allow", "prefer", "require", "verify-ca", "verify-full"], (sslmode) => {
      const url = `postgres://db/x?sslmode=${sslmode}`
      return Effect.map(read({ LICENSING_DATABASE_URL: url, LICENSING_MASTER_KEY: masterKey }), ({ databaseUrl }) =>
        assert.strictEqual(Redacted.value(databaseUrl!), url)
      )
    })
  )
})

describe("an invalid list", () => {
  it.effect("is reported with its first faulty entry", () =>
    Effect.gen(function* () {
      const cases = [
        ["LICENSING_TRUSTED_PROXIES", "10.0.0.0/8, 10.0.0.1/8,everything", "10.0.0.1/8"],
        ["LICENSING_WEBHOOK_ALLOW_CIDRS", "10.0.0.0/8,", ""],
        ["LICENSING_CORS_ORIGINS", "https://a.example.com,b.example.com", "b.example.com"],
        ["LICENSING_WEBHOOK_RETRY_SECONDS", "5,30,soon", "soon"]
      ] as const
      for (const [name, value, entry] of cases) {
        const { lines } = yield* Effect.flip(read({ [name]: value }))
        assert.isTrue(lines[0]!.endsWith(`; "${entry}" is not.`), lines[0])
      }
    })
  )
})

describe("The settings of a cluster", () => {
  const wrong: Record<string, ReadonlyArray<string>> = {
    LICENSING_CLUSTER: ["yes"],
    LICENSING_CLUSTER_LISTEN: ["8081", "host", "host:0", "host:65536"],
    LICENSING_CLUSTER_ADDRESS: ["fd00::1:8081", "http://host:1", "host:1/", ":1"]
  }
  for (const [name, values] of Object.entries(wrong)) {
    it.effect(`an invalid ${name} is reported in one line`, () =>
      Effect.forEach(values, (value) =>
        Effect.map(Effect.flip(read({ [name]: value })), ({ lines }) => {
          assert.strictEqual(lines.length, 1, value)
          assert.match(lines[0]!, new RegExp(`^${name} must be .*\\.$`))
        })
      )
    )
  }

  it.effect("a node of a cluster needs a database, a port and an address", () =>
    Effect.gen(function* () {
      const { lines } = yield* Effect.flip(read({ LICENSING_CLUSTER: "true" }))
      assert.deepStrictEqual(
        lines.map((line) => line.split(" ")[0]),
        ["LICENSING_DATABASE_URL", "LICENSING_CLUSTER_LISTEN", "LICENSING_CLUSTER_ADDRESS"]
      )
      const settings = yield* read({
        LICENSING_CLUSTER: "true",
        LICENSING_CLUSTER_LISTEN: "[::]:8081",
        LICENSING_CLUSTER_ADDRESS: "node-1.internal:8081",
        LICENSING_DATABASE_URL: "postgres://u:p@db/licensing",
        LICENSING_MASTER_KEY: masterKey
      })
      assert.deepStrictEqual(settings.clusterListen, { host: "::", port: 8081 })
      assert.deepStrictEqual(settings.clusterAddress, { host: "node-1.internal", port: 8081 })
    })
  )
})
