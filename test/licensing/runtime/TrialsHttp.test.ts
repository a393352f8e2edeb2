/** Trials that begin without a license key. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import type { PolicyCreate } from "../../../src/vendor/policies/Policy.ts"
import { eventsOf } from "../../support/database/Services.ts"
import { type Answer, assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { startServer, TestServer } from "../../support/http/TestServer.ts"

const day = 86_400_000
let made = 0

/** A product with a policy of public trials, and a function that asks for one. */
const makeProduct = Effect.fnUntraced(function* (given: Partial<typeof PolicyCreate.Type> = {}) {
  const { client, send } = yield* TestServer
  const code = `trial-${++made}`
  const { id } = yield* client.products.create({ payload: { name: "P", code } })
  const policy = yield* client.policies.create({
    params: { id },
    payload: { name: "T", code: "try", license_type: "trial", duration_days: 14, public_trial: true, ...given }
  })
  const ask = (body: object = {}) =>
    send({
      method: "POST",
      path: "/api/v1/license/trial",
      anonymous: true,
      body: { product_code: code, policy_code: "try", binding: { fingerprint: "machine" }, ...body }
    })
  return { ask, code, id, policy }
})

interface Trial {
  readonly kind: string
  readonly license_id: string
  readonly license_key: string
  readonly license_type: string
  readonly device_id: string
  readonly binding_hash: string
  readonly expires_at: string
  readonly issued_at: string
  readonly nonce?: string
  readonly features: ReadonlyArray<{ readonly code: string; readonly expires_at?: string; readonly resets_at?: string }>
}

const trialIn = (answer: Answer): Trial => assertAnswered(answer, 200) as Trial

const countLicenses = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ licenses: number; trials: number; devices: number; last: number }>`
    SELECT (SELECT count(*) FROM licenses)::int AS licenses, (SELECT count(*) FROM public_trials)::int AS trials,
      (SELECT count(*) FROM devices)::int AS devices, (SELECT last FROM event_sequence) AS last`
  return row!
})

layer(TestServer.layer, { timeout: 60_000 })("A trial without a key", (it) => {
  it.effect("is a signed entitlement with the key of a license on which the device is active", () =>
    Effect.gen(function* () {
      const { client, connect, send } = yield* TestServer
      const { ask, code, id, policy } = yield* makeProduct()
      const feature = yield* client.features.create({ params: { id }, payload: { name: "F", code: "api" } })
      yield* client.policies.setFeature({ params: { id: policy.id, feature_id: feature.id }, payload: {} })
      const answer = yield* ask({
        nonce: "asked",
        binding: { fingerprint: "machine", hostname: "host", app_version: "1" }
      })
      assert.deepStrictEqual(Object.keys(answer.json as object), ["data", "signature", "meta"])
      const trial = trialIn(answer)
      assert.deepInclude(trial, {
        kind: "entitlement",
        license_type: "trial",
        nonce: "asked",
        product_code: code,
        policy_id: policy.id,
        status: "active",
        entitlement_version: 1
      } as never)
      assert.strictEqual(Date.parse(trial.expires_at) - Date.parse(trial.issued_at), 14 * day)
      assert.deepStrictEqual(
        trial.features.map((entry) => entry.code),
        ["api"]
      )
      const { runtime } = yield* connect({ licenseKey: trial.license_key })
      const { data } = yield* runtime.validate({ payload: { fingerprint: "machine" } })
      assert.deepInclude(data, { license_id: trial.license_id, device_id: trial.device_id })
      const license = yield* client.licenses.get({ params: { id: trial.license_id } })
      assert.deepInclude(license, {
        active_device_count: 1,
        times_activated: 1,
        entitlement_version: 1,
        policy_id: policy.id
      })
      const { items } = yield* client.devices.list({ params: { id: license.id }, query: {} })
      assert.deepInclude(items[0], { id: trial.device_id, status: "active", hostname: "host" })
      const events = yield* eventsOf(license.id)
      assert.deepStrictEqual(
        events.map(({ actor_id, actor_type, event_type }) => [event_type, actor_type, actor_id]),
        [
          ["license.created", "license", license.id],
          ["license.activated", "license", license.id]
        ]
      )
      assert.notInclude(JSON.stringify(events), trial.license_key)
      assertAnswered(yield* send({ path: `/api/v1/activities?license_id=${license.id}` }), 200)
    })
  )

  it.effect("with a lost response is found by support, and continues with another key", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const { ask } = yield* makeProduct()
      const binding = { fingerprint: "machine-of-a-lost-response" }
      const lost = trialIn(yield* ask({ binding }))
      assertRefused(yield* ask({ binding }), 403, "TRIAL_ALREADY_USED")
      const found = yield* client.search.search({ query: { q: binding.fingerprint } })
      const [device] = found.devices
      assert.strictEqual(device?.license_id, lost.license_id)
      const { license_key } = yield* client.licenses.rotateKey({ params: { id: lost.license_id }, payload: {} })
      const { runtime } = yield* connect({ licenseKey: license_key })
      const { data } = yield* runtime.validate({ payload: binding })
      assert.deepInclude(data, { license_id: lost.license_id, device_id: lost.device_id })
    })
  )

  it.effect("begins a term that begins with the first activation", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { ask } = yield* makeProduct({ duration_starts: "first_activation", require_heartbeat: true })
      const trial = trialIn(yield* ask())
      assert.strictEqual(Date.parse(trial.expires_at) - Date.parse(trial.issued_at), 14 * day)
      const license = yield* client.licenses.get({ params: { id: trial.license_id } })
      assert.strictEqual(license.expires_at, Date.parse(trial.expires_at))
      assert.deepStrictEqual(
        (yield* eventsOf(license.id)).map(({ event_type }) => event_type),
        ["license.created", "license.activated", "license.updated"]
      )
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql`
        SELECT term_days, expires_at, heartbeat_from <= due_at AS bounded FROM licenses l JOIN devices d ON d.license_id = l.id
        WHERE l.id = ${license.id}`
      assert.deepStrictEqual(rows, [{ term_days: null, expires_at: Date.parse(trial.expires_at), bounded: true }])
    })
  )

  it.effect("begins the pending days and periods of its features as its own answer tells", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const { ask, id, policy } = yield* makeProduct({ duration_starts: "first_activation" })
      const come = Effect.fnUntraced(function* (code: string, payload: object) {
        const { id: feature_id } = yield* client.features.create({ params: { id }, payload: { name: code, code } })
        yield* client.policies.setFeature({ params: { id: policy.id, feature_id }, payload })
      })
      yield* come("days", { expires_after_days: 7 })
      yield* come("daily", { max_consumptions: 100, reset_period: "day" })
      const trial = trialIn(yield* ask())
      const { runtime } = yield* connect({ licenseKey: trial.license_key })
      const { data } = yield* runtime.validate({ payload: { fingerprint: "machine" } })
      const begins = Date.parse(trial.issued_at)
      const ends = { daily: begins + day, days: begins + 7 * day }
      const shown = trial.features.map(({ code, expires_at, resets_at }) => [code, expires_at ?? resets_at])
      assert.deepStrictEqual(
        shown,
        Object.entries(ends).map(([code, end]) => [code, formatTimestamp(end)])
      )
      const stored = data.features.map(({ code, expires_at, resets_at }) => [code, expires_at ?? resets_at])
      assert.deepStrictEqual(stored, Object.entries(ends))
    })
  )

  it.effect(
    "is given once to a device for a product, under any policy, also after it ended or its license is gone",
    () =>
      Effect.gen(function* () {
        const { advance, client } = yield* TestServer
        const sql = yield* SqlClient.SqlClient
        const { ask, id } = yield* makeProduct()
        const other = yield* makeProduct()
        const trial = trialIn(yield* ask())
        assertRefused(yield* ask(), 403, "TRIAL_ALREADY_USED")
        yield* client.policies.create({
          params: { id },
          payload: { name: "T", code: "longer", license_type: "trial", duration_days: 30, public_trial: true }
        })
        assertRefused(yield* ask({ policy_code: "longer" }), 403, "TRIAL_ALREADY_USED")
        trialIn(yield* other.ask())
        trialIn(yield* ask({ binding: { fingerprint: "another machine" } }))
        const container = { binding: { is_container: true, container_id: "machine" } }
        trialIn(yield* ask(container))
        assertRefused(yield* ask(container), 403, "TRIAL_ALREADY_USED")
        yield* advance((15 * day) / 1_000)
        assertRefused(yield* ask(), 403, "TRIAL_ALREADY_USED")
        yield* sql`DELETE FROM devices WHERE license_id = ${trial.license_id}`
        yield* sql`DELETE FROM licenses WHERE id = ${trial.license_id}`
        assertRefused(yield* ask(), 403, "TRIAL_ALREADY_USED")
      })
  )

  it.effect("is refused for an unknown product, and alike for an unknown policy and one without public trials", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { ask, id, policy } = yield* makeProduct()
      yield* client.policies.create({ params: { id }, payload: { name: "N", code: "not", license_type: "trial" } })
      const before = yield* countLicenses
      assertRefused(yield* ask({ product_code: "none" }), 404, "NOT_FOUND", "product_code")
      const refused = yield* Effect.forEach(["none", "not"], (policy_code) => ask({ policy_code }))
      for (const answer of refused) assertRefused(answer, 403, "TRIAL_NOT_ALLOWED", "policy_code")
      assert.deepStrictEqual(refused[1]!.error, refused[0]!.error)
      assert.deepStrictEqual(yield* countLicenses, before)
      yield* client.policies.update({ params: { id: policy.id }, payload: { public_trial: false } })
      assertRefused(yield* ask(), 403, "TRIAL_NOT_ALLOWED", "policy_code")
    })
  )

  it.effect.each(["creation", "first_activation"] as const)("that is refused is not used up: %s", (duration_starts) =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { ask, id } = yield* makeProduct({ allow_vm: false, allow_container: false, duration_starts })
      yield* client.versions.create({ params: { id }, payload: { version: "1.0", released_at: 0 } })
      yield* client.versions.create({
        params: { id },
        payload: { version: "9.0", released_at: Date.parse("2999-01-01") }
      })
      const before = yield* countLicenses
      const machine = { fingerprint: "machine" }
      const container = { is_container: true, container_id: "c" }
      assertRefused(yield* ask({ binding: { ...machine, is_vm: true } }), 403, "VM_NOT_ALLOWED", "is_vm")
      assertRefused(yield* ask({ binding: container }), 403, "CONTAINER_NOT_ALLOWED", "is_container")
      assertRefused(yield* ask({ binding: { ...machine, app_version: "2.0" } }), 403, "VERSION_UNKNOWN", "app_version")
      assertRefused(
        yield* ask({ binding: { ...machine, app_version: "9.0" } }),
        403,
        "VERSION_NOT_ENTITLED",
        "app_version"
      )
      assert.deepStrictEqual(yield* countLicenses, before)
      const { version_eligibility } = trialIn(yield* ask({ binding: { ...machine, app_version: "1.0" } })) as never as {
        version_eligibility: object
      }
      assert.deepInclude(version_eligibility, { is_entitled: true, enforced: true })
    })
  )

  it.effect("needs a body of the right form", () =>
    Effect.gen(function* () {
      const { ask } = yield* makeProduct()
      assertRefused(yield* ask({ binding: {} }), 422, "VALIDATION_ERROR", "binding.fingerprint")
      assertRefused(yield* ask({ binding: { is_container: true } }), 422, "VALIDATION_ERROR", "binding.container_id")
      assertRefused(yield* ask({ binding: "machine" }), 400, "INVALID_JSON", "binding")
      assertRefused(yield* ask({ binding: { fingerprint: "f", other: 1 } }), 400, "INVALID_JSON", "binding.other")
      assertRefused(yield* ask({ fingerprint: "f" }), 400, "INVALID_JSON", "fingerprint")
      assertRefused(yield* ask({ product_code: "" }), 422, "VALIDATION_ERROR", "product_code")
      assertRefused(yield* ask({ nonce: "\u0007" }), 422, "VALIDATION_ERROR", "nonce")
    })
  )
})

layer(TestServer.layer, { timeout: 60_000 })("Requests for the same trial", (it) => {
  it.effect("on several nodes at the same time give it once, and write nothing else", () =>
    Effect.gen(function* () {
      const { ask, code } = yield* makeProduct()
      const other = yield* startServer()
      const askOther = other.send({
        method: "POST",
        path: "/api/v1/license/trial",
        anonymous: true,
        body: { product_code: code, policy_code: "try", binding: { fingerprint: "machine" } }
      })
      const before = yield* countLicenses
      const answers = yield* Effect.all([ask(), askOther, ask(), askOther, ask(), askOther], {
        concurrency: "unbounded"
      })
      const sorted = answers.toSorted((a, b) => a.status - b.status)
      trialIn(sorted[0]!)
      for (const answer of sorted.slice(1)) assertRefused(answer, 403, "TRIAL_ALREADY_USED")
      assert.deepStrictEqual(yield* countLicenses, {
        licenses: before.licenses + 1,
        trials: before.trials + 1,
        devices: before.devices + 1,
        last: before.last + 2
      })
    }).pipe(Effect.scoped)
  )
})

layer(TestServer.layerWith({ rateActivation: 3 }), { timeout: 60_000 })("Trials", (it) => {
  it.effect("are limited by address", () =>
    Effect.gen(function* () {
      const { ask } = yield* makeProduct()
      trialIn(yield* ask())
      assertRefused(yield* ask(), 403, "TRIAL_ALREADY_USED")
      trialIn(yield* ask({ binding: { fingerprint: "second" } }))
      const refused = yield* ask({ binding: { fingerprint: "third" } })
      assertRefused(refused, 429, "RATE_LIMITED", "trial")
      assert.isDefined(refused.headers["retry-after"])
    })
  )
})
