/**
 * Runs and refuses every operation with telemetry on, everything sampled, then searches every exported byte for the keys,
 * tokens, secrets, fingerprints, emails and names that were used.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as Tokens from "../../src/access/Tokens.ts"
import * as LicenseKey from "../../src/licensing/model/LicenseKey.ts"
import { layerTelemetry, TelemetryReceiver } from "../support/http/TelemetryReceiver.ts"
import { TestServer } from "../support/http/TestServer.ts"
import { layerService, makeReceiver } from "../support/http/Webhooks.ts"
import { Conversation, type Request } from "./cases/Conversation.ts"
import { allowingUnrouted, bodyOf, type Fixture, Fixtures, requestOf } from "./cases/Fixtures.ts"
import { type Operation, operations } from "./cases/Surface.ts"

const Subject = Fixtures.layer.pipe(
  Layer.provideMerge(Conversation.layer),
  Layer.provideMerge(layerService(allowingUnrouted)),
  Layer.provide(layerTelemetry()),
  Layer.provideMerge(TelemetryReceiver.layer)
)

/** Members of answers that contain a secret. */
const showing = new Set(["token", "license_key", "lease_token", "secret"])
/** Members of bodies that say who someone is, or which machine. */
const personal = new Set(["name", "email", "customer_name", "customer_email", "hostname", "fingerprint"])

const found = (value: unknown, names: ReadonlySet<string>): ReadonlyArray<string> => {
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    names.has(name) && typeof member === "string" ? [member] : found(member, names)
  )
}

/** Whether a resource is not usable after the operation. */
const isEnd = ({ id, method }: Operation) =>
  method === "DELETE" || /revoke|erase|blacklist|rotate|deactivate|suspend|checkin/i.test(id)

let made = 0
/** The body with values of its own for everything personal. */
const withPersons = (value: unknown, known: ReadonlySet<string>): unknown => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      if (!personal.has(name) || typeof member !== "string" || known.has(member)) {
        return [name, withPersons(member, known)]
      }
      const person = `Zebulon-${++made}-Quux`
      return [name, name.includes("email") ? `${person}@example.com` : person]
    })
  )
}

const spellings = (secret: string): ReadonlyArray<string> => [
  secret,
  ...(["hex", "base64", "base64url"] as const).map((each) => Buffer.from(secret).toString(each).replace(/=+$/, ""))
]

layer(Subject, { timeout: "3 minutes", excludeTestServices: true })("Exported telemetry", (it) => {
  const secrets = new Set<string>()
  const keep = (values: ReadonlyArray<string>) => {
    for (const value of values) secrets.add(value)
  }

  /** Runs an operation correctly, with other credentials, and with a faulty body. */
  const exercise = Effect.fnUntraced(function* (operation: Operation, fixture: Fixture) {
    const { ask } = yield* Conversation
    const body = withPersons(bodyOf(operation, fixture), new Set([fixture.fingerprint])) as object | undefined
    keep(found(body, personal))
    const right: Request = {
      ...requestOf(operation, fixture),
      ...(body === undefined ? undefined : { body }),
      headers: operation.method === "GET" ? {} : { "idempotency-key": `of-${operation.id}` }
    }
    keep(found((yield* ask(operation, right)).json, showing))
    if (operation.credential === "none") return
    const [token, key] = [
      Tokens.fromBytes(new Uint8Array(32).fill(5)),
      LicenseKey.fromBytes(new Uint8Array(28).fill(5))
    ]
    keep([token, key])
    yield* ask(operation, {
      ...right,
      authorization: operation.credential === "token" ? `Bearer ${token}` : `License ${key}`
    })
    if (body !== undefined) yield* ask(operation, { ...right, headers: {}, body: { ...body, unknown: 1 } })
  })

  /** The same with an active device whose fingerprint is unique. */
  const withFingerprint = Effect.fnUntraced(function* (fixture: Fixture) {
    const { data } = yield* Conversation
    const fingerprint = `Zebulon-${++made}-Quux`
    yield* data("activateLicense", { authorization: `License ${fixture.licenseKey}`, body: { fingerprint } })
    return { ...fixture, fingerprint }
  })

  /** Secrets where they do not belong: in paths, in queries, and in rows that PostgreSQL's messages quote. */
  const misplace = Effect.fnUntraced(function* (fixture: Fixture) {
    const sql = yield* SqlClient.SqlClient
    const { send } = yield* TestServer
    const { fingerprint, licenseKey } = fixture
    const email = "zebulon-in-a-query@example.com"
    keep([email, "host-of-a-failure"])
    for (const path of [
      `/api/v1/search?q=${licenseKey}`,
      `/api/v1/licenses?q=${email}`,
      `/api/v1/licenses/${licenseKey}`
    ]) {
      yield* send({ path })
    }
    yield* send({ path: `/${licenseKey}`, anonymous: true, headers: { "user-agent": email, cookie: licenseKey } })
    yield* sql`ALTER TABLE devices ADD CONSTRAINT failing CHECK (hostname <> 'host-of-a-failure')`
    const { status } = yield* send({
      method: "POST",
      path: "/api/v1/license/activate",
      headers: { authorization: `License ${licenseKey}` },
      body: { fingerprint, hostname: "host-of-a-failure" }
    })
    assert.strictEqual(status, 500)
    yield* sql`ALTER TABLE devices DROP CONSTRAINT failing`
  })

  it.effect("has no key, token, secret, fingerprint, email or name in any byte", () =>
    Effect.gen(function* () {
      const { adminToken, client } = yield* TestServer
      const { make } = yield* Fixtures
      const { url } = yield* makeReceiver
      const { secret } = yield* client.webhooks.create({ payload: { name: "W", url } })
      keep([adminToken, secret, "of-the-receiver"])
      const { exports, logs, metrics, spans, until } = yield* TelemetryReceiver
      const bound = Effect.flatMap(make, withFingerprint)
      let fixture = yield* bound
      for (const operation of operations) {
        keep([fixture.licenseKey, fixture.leaseToken])
        yield* exercise(operation, fixture)
        if (isEnd(operation)) fixture = yield* bound
      }
      yield* misplace(fixture)
      yield* until(() => spans.find(({ attributes }) => attributes["http.response.status_code"] === 500))
      yield* until(() => logs.find(({ body }) => body === "A request failed."))
      yield* until(() => spans.find(({ attributes }) => "licensing.webhook.id" in attributes))
      yield* until(() => (metrics.size > 10 ? metrics : undefined))
      const text = Buffer.concat(exports.map(({ body }) => body)).toString("latin1")
      const told = [...secrets].filter((secret) => spellings(secret).some((spelling) => text.includes(spelling)))
      assert.deepStrictEqual(told, [])
      assert.isAbove(secrets.size, 50)
      assert.isAbove(spans.filter(({ kind }) => kind === "SERVER").length, operations.length)
    })
  )
})
