/** The typed client, as another service uses it, with a running service. */
import { createPublicKey, verify } from "node:crypto"
import { readFileSync } from "node:fs"
import { assert, layer } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Redacted, Stream, Tracer } from "effect"
import { FetchHttpClient, HttpClient, HttpClientError } from "effect/http"
import { TestClock } from "effect/testing"
import { operationNameFiles } from "../../../infra/scripts/operationNames.ts"
import { Client, catchCode } from "../../../src/clients/client/Client.ts"
import { operations } from "../../../src/clients/client/Operations.ts"
import * as Surface from "../../contract/cases/Surface.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

/** A client of the test's server with the admin token, over the given HTTP client. */
const clientOver = (http: Layer.Layer<HttpClient.HttpClient> = FetchHttpClient.layer) =>
  Effect.flatMap(TestServer, ({ adminToken, baseUrl }) =>
    Effect.provide(Client, Client.layer({ baseUrl, token: Redacted.make(adminToken) }).pipe(Layer.provide(http)))
  )

/** An HTTP client whose first responses are lost after the service has sent them. */
const losing = (count: number) =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.map(HttpClient.HttpClient, (client) => {
      let lost = 0
      return HttpClient.transform(client, (response, request) =>
        lost >= count
          ? response
          : Effect.flatMap(response, () => {
              lost++
              const reason = new HttpClientError.TransportError({ request, cause: new Error("lost") })
              return Effect.fail(new HttpClientError.HttpClientError({ reason }))
            })
      )
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))

const isSignature = (bytes: Uint8Array, value: string, public_key: string) => {
  const x = Buffer.from(public_key, "base64").toString("base64url")
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" })
  return verify(null, bytes, key, Buffer.from(value, "base64"))
}

layer(TestServer.layer, { timeout: 60_000 })("The typed client", (it) => {
  it.effect("has every operation of the document under its operationId", () =>
    Effect.sync(() => {
      for (const [path, text] of Object.entries(operationNameFiles()))
        assert.strictEqual(readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8"), text)
      assert.sameMembers(
        operations.map(({ id }): string => id),
        Surface.operations.map(({ id }) => id)
      )
    })
  )

  it.effect("keeps the signed bytes beside the decoded response, and beside a refusal", () =>
    Effect.gen(function* () {
      const client = yield* clientOver()
      const license = yield* issue()
      const key = Client.withLicenseKey(Redacted.make(license.license_key))
      const { items } = yield* client.listPublicKeys()
      const payload = { fingerprint: "a machine ž" }
      const { bytes, data, signature } = yield* key(client.activateLicense({ payload }))
      assert.isTrue(isSignature(bytes, signature.value, items[0]?.public_key ?? ""))
      assert.strictEqual(data.expires_at, license.expires_at)
      assert.strictEqual(
        JSON.parse(Buffer.from(bytes).toString()).expires_at,
        new Date(license.expires_at).toISOString()
      )
      yield* client.suspendLicense({ params: { id: license.id } })
      const refused = yield* Effect.flip(key(client.validateLicense({ payload })))
      assert.strictEqual(refused._tag, "Refusal")
      if (refused._tag !== "Refusal") return
      assert.strictEqual(refused.code, "LICENSE_SUSPENDED")
      assert.strictEqual(refused.facts?.status, "suspended")
      assert.isTrue(
        isSignature(refused.bytes ?? new Uint8Array(), refused.signature?.value ?? "", items[0]?.public_key ?? "")
      )
    })
  )

  it.effect("refuses with typed codes, which are handled one by one", () =>
    Effect.gen(function* () {
      const client = yield* clientOver()
      const missing = { params: { id: "prod_none" } }
      const handled = client.getProduct(missing).pipe(catchCode("NOT_FOUND", ({ detail }) => Effect.succeed(detail)))
      assert.strictEqual(yield* handled, "id")
      const other = client.getProduct(missing).pipe(catchCode("TOKEN_INVALID", () => Effect.succeed("handled")))
      assert.deepInclude(yield* Effect.flip(other), { _tag: "Refusal", code: "NOT_FOUND" })
      const unknown = client.listProducts({}).pipe(Client.withToken(Redacted.make("lsm_none")), Effect.flip)
      assert.deepInclude(yield* unknown, { code: "TOKEN_MALFORMED" })
      const runtime = yield* Effect.flip(client.checkLicense({ payload: { fingerprint: "m" } }))
      assert.deepInclude(runtime, { code: "LICENSE_KEY_MISSING" })
    })
  )

  it.effect("streams all pages of a list", () =>
    Effect.gen(function* () {
      const client = yield* clientOver()
      const codes = Array.from({ length: 25 }, (_, index) => `page-${String(index).padStart(2, "0")}`)
      yield* Effect.forEach(codes, (code) => client.createProduct({ payload: { name: "Paged", code } }))
      const found = yield* Client.all(client.listProducts, { query: { limit: 10 } }).pipe(
        Stream.map(({ code }) => code),
        Stream.filter((code) => code.startsWith("page-")),
        Stream.runCollect
      )
      assert.deepStrictEqual([...found], codes.toReversed())
      const events = yield* Client.all(client.listEvents, { query: { event_type: "product.created", limit: 7 } }).pipe(
        Stream.take(20),
        Stream.runCollect
      )
      const sequences = [...events].map(({ sequence }) => sequence)
      assert.deepStrictEqual(
        sequences,
        [...new Set(sequences)].sort((a, b) => b - a)
      )
      assert.lengthOf(sequences, 20)
    })
  )

  it.effect("makes a change once although responses are lost", () =>
    Effect.gen(function* () {
      const client = yield* clientOver(losing(2))
      const license = yield* issue()
      const { expires_at = 0 } = yield* TestClock.withLive(
        client.renewLicense({ params: { id: license.id }, payload: { extend_by_days: 30 } })
      )
      assert.strictEqual(expires_at, license.expires_at + 30 * 86_400_000)
      const again = yield* clientOver()
      const renew = again.renewLicense({ params: { id: license.id }, payload: { extend_by_days: 30 } })
      const order = Client.withIdempotencyKey("order 17")
      const first = yield* order(renew)
      assert.strictEqual((yield* order(renew)).expires_at, first.expires_at)
      assert.isAbove((yield* renew).expires_at ?? 0, first.expires_at ?? 0)
    })
  )

  it.effect("changes a record only as it was read", () =>
    Effect.gen(function* () {
      const client = yield* clientOver()
      const { id } = yield* client.createProduct({ payload: { name: "Editor", code: "conditional" } })
      const params = { id }
      const read = yield* client.getProduct({ params })
      const rename = (name: string) => client.updateProduct({ params, payload: { name } })
      const renamed = yield* rename("Writer").pipe(Client.ifUnchanged(read))
      const refused = yield* Effect.flip(rename("Reader").pipe(Client.ifUnchanged(read)))
      assert.strictEqual("code" in refused && refused.code, "CONFLICT")
      assert.strictEqual((yield* rename("Reader").pipe(Client.ifUnchanged(renamed))).name, "Reader")
      const { items } = yield* client.listProducts({ query: { limit: 1 } })
      const listed = yield* Effect.flip(rename("Listed").pipe(Client.ifUnchanged(items[0]!)))
      assert.strictEqual("code" in listed && listed.code, "CONFLICT")
    })
  )

  it.effect("makes no change without a condition where one is asked for", () =>
    Effect.gen(function* () {
      const client = yield* clientOver()
      const { id, license_key } = yield* issue()
      const params = { id }
      const read = yield* client.getLicense({ params })
      const payload = { fingerprint: "m" }
      const suspend = client.suspendLicense({ params })
      const activate = client.activateLicense({ payload }).pipe(Client.withLicenseKey(Redacted.make(license_key)))
      for (const change of [suspend, activate] as ReadonlyArray<Effect.Effect<unknown, unknown>>) {
        const exit = yield* Effect.exit(Client.ifUnchanged(read)(change))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
      }
      const now = yield* client.getLicense({ params }).pipe(Client.ifUnchanged(read))
      assert.strictEqual(now.status, "active")
      assert.lengthOf((yield* client.listDevices({ params })).items, 0)
    })
  )

  it.effect("does not give a device back twice", () =>
    Effect.gen(function* () {
      const client = yield* clientOver(losing(1))
      const license = yield* issue()
      const payload = { fingerprint: "m" }
      yield* license.runtime.activate({ payload })
      const call = client.deactivateLicense({ payload }).pipe(Client.withLicenseKey(Redacted.make(license.license_key)))
      assert.strictEqual((yield* Effect.flip(call))._tag, "HttpClientError")
    })
  )

  it.effect("traces each operation under its operationId, and passes the trace on", () =>
    Effect.gen(function* () {
      const spans: Array<Tracer.Span> = []
      const headers: Array<string | undefined> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          spans.push(span)
          return span
        }
      })
      const watched = Layer.effect(
        HttpClient.HttpClient,
        Effect.map(
          HttpClient.HttpClient,
          HttpClient.tap((response) => Effect.sync(() => headers.push(response.request.headers["traceparent"])))
        )
      ).pipe(Layer.provide(FetchHttpClient.layer))
      const client = yield* clientOver(watched)
      yield* client
        .listProducts({})
        .pipe(Effect.withSpan("nightly report"), Effect.provideService(Tracer.Tracer, tracer))
      const names = spans.map(({ name }) => name)
      assert.includeMembers(names, ["nightly report", "listProducts"])
      const [own] = spans.filter(({ name }) => name === "listProducts")
      assert.strictEqual(headers.length, 1)
      assert.include(headers[0] ?? "", own?.traceId ?? "none")
    })
  )
})
