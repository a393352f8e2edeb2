/**
 * Runs, refuses and fails every operation, then searches every log record, span, metric, event and table
 * for every secret that was used. A secret may appear only in the answer to its holder.
 */
import { assert, layer } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Logger, Metric, Redacted, References, Tracer } from "effect"
import { SqlClient } from "effect/sql"
import * as Tokens from "../../src/access/Tokens.ts"
import * as LicenseKey from "../../src/licensing/model/LicenseKey.ts"
import { MasterKey } from "../../src/platform/signing/MasterKey.ts"
import { TestServer } from "../support/http/TestServer.ts"
import { Conversation, type Request } from "./cases/Conversation.ts"
import { allowingUnrouted, bodyOf, type Fixture, Fixtures, requestOf } from "./cases/Fixtures.ts"
import { type Operation, operations } from "./cases/Surface.ts"

/** The output of the service by its kind. */
const told = { logs: [] as Array<string>, spans: [] as Array<string> }

const jsonSafe = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value)

const logging = Layer.merge(
  Logger.layer([
    Logger.make(({ cause, fiber, message }) => {
      const annotations = fiber.getRef(References.CurrentLogAnnotations)
      told.logs.push(JSON.stringify([message, annotations], jsonSafe), Cause.pretty(cause))
    })
  ]),
  Layer.succeed(References.MinimumLogLevel, "All")
)

class RecordedSpan extends Tracer.NativeSpan {
  override end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    super.end(endTime, exit)
    const failed = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
    told.spans.push(this.name, JSON.stringify([...this.attributes, this.events], jsonSafe), failed)
  }
}
const tracing = Layer.succeed(Tracer.Tracer, Tracer.make({ span: (options) => new RecordedSpan(options) }))

/** Mails wait, because no worker sends them. */
const mailing = {
  smtpUrl: Redacted.make("smtp://reader:the-password-of-a-mail-server@localhost"),
  mailFrom: { address: "licenses@example.com", name: undefined }
}

const Subject = Fixtures.layer.pipe(
  Layer.provideMerge(Conversation.layer),
  Layer.provideMerge(TestServer.layerWith({ ...allowingUnrouted, ...mailing })),
  Layer.provide([logging, tracing])
)

/** Members of answers that contain a secret. */
const showing = new Set(["token", "license_key", "lease_token", "secret"])

const secretsIn = (value: unknown): ReadonlyArray<string> => {
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    showing.has(name) && typeof member === "string" ? [member] : secretsIn(member)
  )
}

const unknownToken = Tokens.fromBytes(new Uint8Array(32).fill(5))
const unknownKey = LicenseKey.fromBytes(new Uint8Array(28).fill(5))
const chosen = "a webhook secret that its owner has chosen"
const mailed = { customer_email: "reader@example.com", send_key: true }
const chosenKey = "a-license-key-that-its-vendor-has-chosen"

/** All encodings in which a secret could appear. */
const spellings = (secret: string | Uint8Array): ReadonlyArray<string> => {
  const bytes = Buffer.from(secret as string)
  const encoded = (["hex", "base64", "base64url"] as const).map((encoding) =>
    bytes.toString(encoding).replace(/=+$/, "")
  )
  return typeof secret === "string" ? [secret, ...encoded] : encoded
}

layer(Subject, { timeout: "3 minutes" })("Secrets", (it) => {
  const secrets = new Map<string, string | Uint8Array>()
  const keep = (what: string, ...found: ReadonlyArray<string | Uint8Array>) => {
    for (const secret of found) secrets.set(`${what}: ${String(secret)}`, secret)
  }

  /** Runs an operation correctly, with an Idempotency-Key, repeated, with other credentials, and with errors. */
  const exercise = Effect.fnUntraced(function* (operation: Operation, fixture: Fixture) {
    const { ask } = yield* Conversation
    const body = bodyOf(operation, fixture) as Record<string, unknown> | undefined
    const more = {
      ...("secret" in (body ?? {}) || operation.id === "createWebhook" ? { secret: chosen } : undefined),
      ...(operation.id === "createLicense" ? { license_key: chosenKey, ...mailed } : undefined)
    }
    const right: Request = {
      ...requestOf(operation, fixture),
      ...(body === undefined ? undefined : { body: { ...body, ...more } }),
      headers: operation.method === "GET" ? {} : { "idempotency-key": `of-${operation.id}` }
    }
    const first = yield* ask(operation, right)
    if (first.status < 300) yield* ask(operation, right)
    keep(operation.id, ...secretsIn(first.json))
    if (operation.credential === "none") return
    const scheme = operation.credential === "token" ? `Bearer ${unknownToken}` : `License ${unknownKey}`
    for (const authorization of [scheme, scheme.slice(0, -1), `Basic ${unknownToken}`]) {
      yield* ask(operation, { ...right, authorization })
    }
    if (body !== undefined) yield* ask(operation, { ...right, headers: {}, body: { ...body, ...more, unknown: 1 } })
  })

  /** The same with a device whose values are unique. */
  const bound = Effect.fnUntraced(function* (made: Fixture) {
    const { data } = yield* Conversation
    const fixture = { ...made, fingerprint: `fingerprint-of-${made.fingerprint}-only` }
    const { fingerprint, leaseToken, licenseKey } = fixture
    keep("license key", licenseKey)
    keep("lease token", leaseToken)
    keep("fingerprint", fingerprint)
    const authorization = `License ${licenseKey}`
    const { device_id } = yield* data<{ readonly device_id: string }>("activateLicense", {
      authorization,
      body: { fingerprint }
    })
    return { ...fixture, ids: { ...fixture.ids, devices: device_id } }
  })

  /** Makes statements with secret values fail: PostgreSQL's error messages quote rows and must not appear either. */
  const failing = Effect.fnUntraced(function* (fixture: Fixture) {
    const sql = yield* SqlClient.SqlClient
    const { send } = yield* TestServer
    const fingerprint = "fingerprint-of-a-failure"
    keep("fingerprint", fingerprint)
    yield* sql`ALTER TABLE devices ADD CONSTRAINT failing CHECK (fingerprint <> 'fingerprint-of-a-failure')`
    yield* sql`ALTER TABLE api_keys ADD CONSTRAINT failing CHECK (name <> 'failing')`
    const activation = yield* send({
      method: "POST",
      path: "/api/v1/license/activate",
      headers: { authorization: `License ${fixture.licenseKey}` },
      body: { fingerprint, hostname: "host-of-a-failure" }
    })
    const creation = yield* send({ method: "POST", path: "/api/v1/api-keys", body: { name: "failing" } })
    assert.deepStrictEqual([activation.status, creation.status], [500, 500])
    for (const secret of [fingerprint, "host-of-a-failure", "api_keys"]) {
      assert.notInclude(activation.text + creation.text, secret)
    }
    yield* sql`ALTER TABLE devices DROP CONSTRAINT failing`
    yield* sql`ALTER TABLE api_keys DROP CONSTRAINT failing`
  })

  const signingSeeds = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const masterKey = yield* MasterKey
    const rows = yield* sql<{ kid: string; sealed: Uint8Array }>`
      SELECT kid, private_key_sealed AS sealed FROM signing_keys WHERE length(private_key_sealed) > 0`
    return yield* Effect.forEach(rows, ({ kid, sealed }) => masterKey.open(sealed, `signing_keys/${kid}`))
  })

  /** Every row of every table as text, bytes in hex, without the bindings of devices. */
  const dump = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const tables = yield* sql<{ name: string }>`
      SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`
    return yield* Effect.forEach(tables, ({ name }) =>
      Effect.map(
        sql<{ row: string }>`SELECT (to_jsonb(t) - 'fingerprint' - 'binding_key')::text AS row FROM ${sql(name)} t`,
        (rows) => [name, rows.map(({ row }) => row).join("\n")] as const
      )
    )
  })

  it.effect("appear only in answers to their holders", () =>
    Effect.gen(function* () {
      const { adminToken } = yield* TestServer
      const { make } = yield* Fixtures
      keep("token", adminToken, unknownToken)
      keep("license key", unknownKey)
      keep("master key", new Uint8Array(32).fill(7))
      keep("webhook secret", chosen)
      keep("license key", chosenKey)
      keep("password", "the-password-of-a-mail-server")
      let fixture = yield* bound(yield* make)
      for (const operation of operations) {
        yield* exercise(operation, fixture)
        if (operation.method !== "GET") fixture = yield* bound(yield* make)
      }
      yield* failing(fixture)
      keep("signing key", ...(yield* signingSeeds))

      const metrics = yield* Metric.dump
      const places: ReadonlyArray<readonly [string, string]> = [
        ["a log record", told.logs.join("\n")],
        ["a span", told.spans.join("\n")],
        ["a metric", metrics],
        ...(yield* dump).map(([table, rows]) => [`the table ${table}`, rows] as const)
      ]
      const empty = places.filter(([, text]) => text === "").map(([place]) => place)
      for (const table of ["events", "api_keys", "licenses", "devices", "leases", "idempotent_answers", "mails"]) {
        assert.notInclude(empty, `the table ${table}`)
      }
      for (const place of ["a log record", "a span", "a metric"]) assert.notInclude(empty, place)
      const found = places.flatMap(([place, text]) =>
        [...secrets].flatMap(([what, secret]) =>
          spellings(secret).some((spelling) => text.includes(spelling)) ? [`${place} tells the ${what}`] : []
        )
      )
      assert.deepStrictEqual(found, [])
      assert.isAbove(secrets.size, 20)
    })
  )
})
