/** Changes of many licenses at once: what they change, refuse and leave, exactly once, with several workers and jobs. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { BulkJob, BulkJobCreate } from "../../../src/licensing/bulk/BulkJob.ts"
import { makeBulkWorker } from "../../support/database/BulkWorkers.ts"
import { Database, holdLock, untilBlocked } from "../../support/database/Database.ts"
import { at } from "../../support/database/Exports.ts"
import { type Answer, assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { code, makeLicense, makeProduct, tokenFor } from "../../support/http/ProductTokens.ts"
import { TestServer } from "../../support/http/TestServer.ts"

type Request = typeof BulkJobCreate.Type

const path = "/api/v1/bulk-jobs"

const runPass = Effect.flatMap(makeBulkWorker, ({ pass }) => Effect.orDie(pass))

const create = (payload: Request) => Effect.flatMap(TestServer, ({ client }) => client.bulkJobs.create({ payload }))
const jobOf = ({ id }: { readonly id: string }) =>
  Effect.flatMap(TestServer, ({ client }) => client.bulkJobs.get({ params: { id } }))

/** Creates a job and lets a worker finish it. */
const run = (payload: Request) => Effect.flatMap(Effect.tap(create(payload), runPass), jobOf)

const licensesOf = (product: Parameters<typeof makeLicense>[0], count: number, more: object = {}) =>
  Effect.forEach(Array.from({ length: count }), () => makeLicense(product, more), { concurrency: 10 })

const get = (id: string) => Effect.flatMap(TestServer, ({ client }) => client.licenses.get({ params: { id } }))

const toId = ({ id }: { readonly id: string }) => id

/** The events of a job, by license. */
const eventsOf = Effect.fnUntraced(function* ({ id }: { readonly id: string }) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ readonly resource_id: string; readonly event_type: string; readonly actor_type: string }>`
    SELECT resource_id, event_type, actor_type FROM events WHERE metadata ->> 'bulk_job_id' = ${id} ORDER BY sequence`
})

const counts = { changed: 0, unchanged: 0, refused: 0 }

layer(TestServer.layer.pipe(Layer.provideMerge(Database.layer)), { timeout: 120_000 })("A bulk job", (it) => {
  it.effect("changes the licenses that match its filter, each with its event, and says why others are refused", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const product = yield* makeProduct
      const made = yield* licensesOf(product, 3)
      const [suspended, revoked] = yield* licensesOf(product, 2)
      const other = yield* makeLicense(yield* makeProduct)
      yield* client.licenses.suspend({ params: suspended! })
      yield* client.licenses.revoke({ params: revoked! })
      const job = yield* run({ action: "suspend", filter: { product_id: product.id }, reason: "Not paid." })
      assert.deepInclude(job, {
        status: "completed",
        matched: 5,
        changed: 3,
        unchanged: 1,
        refused: 1,
        reason: "Not paid."
      })
      assert.isDefined(job.ended_at)
      for (const { id } of made) assert.strictEqual((yield* get(id)).status, "suspended")
      assert.strictEqual((yield* get(other.id)).status, "active")
      const events = yield* eventsOf(job)
      assert.sameMembers(
        events.map(({ resource_id }) => resource_id),
        made.map(toId)
      )
      for (const event of events) assert.deepInclude(event, { event_type: "license.suspended", actor_type: "api_key" })
      const { items } = yield* client.bulkJobs.listRefusals({ params: { id: job.id }, query: {} })
      assert.deepStrictEqual(
        items.map(({ code, license_id }) => [license_id, code]),
        [[revoked!.id, "LICENSE_STATE_CONFLICT"]]
      )
      const { items: own } = yield* client.events.list({ query: { resource_id: job.id } })
      assert.deepStrictEqual(
        own.map(({ event_type }) => event_type),
        ["bulk_job.completed", "bulk_job.created"]
      )
      const again = yield* run({ action: "suspend", filter: { product_id: product.id } })
      assert.deepInclude(again, { ...counts, unchanged: 4, refused: 1 })
      const inState = yield* run({ action: "reinstate", filter: { product_id: product.id, status: "suspended" } })
      assert.deepInclude(inState, { ...counts, matched: 4, changed: 4 })
      const { items: matched } = yield* client.licenses.list({ query: { bulk_job_id: job.id } })
      assert.sameMembers(matched.map(toId), [...made, suspended!, revoked!].map(toId))
      const ofJob = yield* run({ action: "suspend", filter: { bulk_job_id: job.id } })
      assert.deepInclude(ofJob, { matched: 5, changed: 4, refused: 1 })
    })
  )

  it.effect("carries out every action as on a single license", () =>
    Effect.gen(function* () {
      const { client, connect } = yield* TestServer
      const product = yield* makeProduct
      const params = { id: product.id }
      const feature = yield* client.features.create({ params, payload: { name: "F", code: "f" } })
      const policy = yield* client.policies.create({
        params,
        payload: { name: "Other", code: code(), license_type: "time_limited", max_activations: 7 }
      })
      const { id, license_key } = yield* makeLicense(product)
      const { runtime } = yield* connect({ licenseKey: license_key })
      yield* runtime.activate({ payload: { fingerprint: "a machine" } })
      const { expires_at = 0 } = yield* get(id)
      const change = Effect.fnUntraced(function* (action: Request["action"], parameters?: Request["parameters"]) {
        const request: Request = { action, license_ids: [id, id], ...(parameters && { parameters }) }
        const tried = yield* run({ ...request, dry_run: true })
        const job = yield* run(request)
        const { items } = yield* client.bulkJobs.listRefusals({ params: { id: job.id }, query: {} })
        assert.deepInclude(job, { ...counts, matched: 1, changed: 1 }, `${action} ${JSON.stringify(items)}`)
        assert.deepInclude(tried, { ...counts, changed: 1 }, action)
        assert.lengthOf(yield* eventsOf(job), 1)
        return yield* get(id)
      })
      assert.strictEqual((yield* change("reset_devices", { release_borrowed: true })).active_device_count, 0)
      assert.strictEqual((yield* change("renew", { extend_by_days: 10 })).expires_at, expires_at + 10 * 86_400_000)
      assert.deepInclude(yield* change("update", { max_transfers: 4, metadata: { a: 1 } }), {
        max_transfers: 4,
        metadata: { a: 1 }
      })
      yield* client.policies.setFeature({ params: { id: product.policy, feature_id: feature.id }, payload: {} })
      yield* change("apply_policy")
      const { items } = yield* client.licenses.listFeatures({ params: { id }, query: {} })
      assert.deepInclude(items[0], { feature_code: "f", from_policy: true })
      assert.strictEqual((yield* change("policy", { policy_id: policy.id })).policy_id, policy.id)
      assert.strictEqual((yield* change("suspend")).status, "suspended")
      assert.strictEqual((yield* change("reinstate")).status, "active")
      assert.strictEqual((yield* change("revoke")).status, "revoked")
    })
  )

  it.effect("that is a dry run decides and counts the same, and changes nothing", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const product = yield* makeProduct
      const [one, revoked] = yield* licensesOf(product, 2)
      yield* client.licenses.revoke({ params: revoked! })
      const before = yield* get(one!.id)
      const job = yield* run({ action: "suspend", filter: { product_id: product.id }, dry_run: true })
      assert.deepInclude(job, { dry_run: true, status: "completed", matched: 2, changed: 1, refused: 1 })
      assert.deepStrictEqual(yield* get(one!.id), before)
      assert.lengthOf(yield* eventsOf(job), 0)
      assert.lengthOf((yield* client.bulkJobs.listRefusals({ params: { id: job.id }, query: {} })).items, 1)
    })
  )

  it.effect("refuses what it does not understand, and every license unless confirmed", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const post = (body: object): Effect.Effect<Answer> => send({ method: "POST", path, body })
      const filter = { status: "active" }
      const refused = Effect.fnUntraced(function* (
        body: object,
        detail: string,
        code = "VALIDATION_ERROR",
        status = 422
      ) {
        assertRefused(yield* post(body), status, code, detail)
      })
      for (const filter of [{}, { q: "" }, { q: " " }]) yield* refused({ action: "suspend", filter }, "confirm_all")
      yield* refused({ action: "suspend", filter: { stauts: "active" } }, "filter.stauts")
      yield* refused({ action: "suspend", filter: { status: "sleeping" } }, "filter.status")
      yield* refused({ action: "suspend", filter: { limit: "1" } }, "filter.limit")
      yield* refused({ action: "suspend" }, "filter")
      yield* refused({ action: "suspend", filter, license_ids: ["lic_1"] }, "license_ids")
      yield* refused({ action: "explode", filter }, "action")
      yield* refused({ action: "suspend", filter, parameters: { extend_by_days: 1 } }, "parameters.extend_by_days")
      yield* refused({ action: "renew", filter }, "parameters.extend_by_days")
      yield* refused({ action: "policy", filter }, "parameters.policy_id")
      yield* refused({ action: "update", filter, parameters: {} }, "parameters.metadata")
      const unknown = { action: "policy", filter, parameters: { policy_id: "pol_none" } }
      yield* refused(unknown, "parameters.policy_id", "NOT_FOUND", 404)
      const everything = yield* create({ action: "suspend", filter: {}, confirm_all: true, dry_run: true })
      assert.isAbove(everything.matched, 0)
      const named = yield* run({ action: "suspend", license_ids: ["lic_none"] })
      assert.deepInclude(named, { ...counts, matched: 1, refused: 1 })
    })
  )

  it.effect("of a token for some products reaches and shows only theirs", () =>
    Effect.gen(function* () {
      const [own, foreign] = [yield* makeProduct, yield* makeProduct]
      const [mine, theirs] = [yield* makeLicense(own), yield* makeLicense(foreign)]
      const { ask } = yield* tokenFor(own)
      const post = (body: object) =>
        Effect.map(ask("POST", "/bulk-jobs", body), (answer) => assertAnswered(answer, 202))
      const all = (yield* post({ action: "suspend", filter: {}, confirm_all: true })) as { readonly id: string }
      const named = (yield* post({ action: "suspend", license_ids: [mine.id, theirs.id] })) as { readonly id: string }
      yield* runPass
      assert.deepInclude(yield* jobOf(all), { ...counts, matched: 1, changed: 1, product_ids: [own.id] })
      assert.deepInclude(yield* jobOf(named), { ...counts, matched: 2, unchanged: 1, refused: 1 })
      assert.strictEqual((yield* get(theirs.id)).status, "active")
      assertRefused(
        yield* ask("POST", "/bulk-jobs", { action: "suspend", filter: { product_id: foreign.id } }),
        404,
        "NOT_FOUND"
      )
      const others = yield* create({ action: "suspend", filter: { product_id: own.id } })
      assertRefused(yield* ask("GET", `/bulk-jobs/${others.id}`), 404, "NOT_FOUND")
      assertRefused(yield* ask("POST", `/bulk-jobs/${others.id}/cancel`), 404, "NOT_FOUND")
      const listed = (yield* ask("GET", "/bulk-jobs")).json as { readonly data: ReadonlyArray<{ readonly id: string }> }
      assert.sameMembers(
        listed.data.map(({ id }) => id),
        [all.id, named.id]
      )
    })
  )

  it.effect("decides again on licenses that were changed while it decided, with the licenses locked", () =>
    Effect.gen(function* () {
      const licenses = yield* licensesOf(yield* makeProduct, 3)
      const job = yield* create({ action: "suspend", license_ids: licenses.map(toId) })
      const { release } = yield* holdLock(
        (sql) => sql`UPDATE licenses SET revision = revision + 1, max_activations = 9 WHERE id = ${licenses[1]!.id}`
      )
      const passing = yield* Effect.forkChild(runPass, { startImmediately: true })
      yield* untilBlocked
      yield* release
      yield* Fiber.join(passing)
      assert.deepInclude(yield* jobOf(job), { ...counts, changed: 3, status: "completed" })
      assert.lengthOf(yield* eventsOf(job), 3)
      assert.deepInclude(yield* get(licenses[1]!.id), { status: "suspended", max_activations: 9 })
    })
  )

  it.effect("stops where it is canceled, and is created once for an Idempotency-Key", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const product = yield* makeProduct
      const { id } = yield* makeLicense(product)
      const body = { action: "suspend", filter: { product_id: product.id, q: "Zdenka", "metadata[to]": "Zdenka" } }
      const headers = { "idempotency-key": code() }
      const first = assertAnswered(yield* send({ method: "POST", path, body, headers }), 202) as BulkJob
      const second = yield* send({ method: "POST", path, body, headers })
      assert.strictEqual(second.headers["idempotency-replayed"], "true")
      assert.deepStrictEqual((second.json as { readonly data: unknown }).data, first)
      assert.deepInclude(first, { matched: 0, filter: { ...body.filter, q: "…", "metadata[to]": "…" } })
      yield* runPass
      assertRefused(
        yield* send({ method: "POST", path: `${path}/${first.id}/cancel` }),
        409,
        "BULK_JOB_STATE_CONFLICT",
        "completed"
      )
      const open = yield* create({ action: "suspend", license_ids: [id] })
      assert.strictEqual((yield* client.bulkJobs.cancel({ params: open })).status, "canceled")
      yield* runPass
      assert.deepInclude(yield* jobOf(open), { ...counts, status: "canceled" })
      assert.strictEqual((yield* get(id)).status, "active")
    })
  )

  it.effect("changes each license once, with two jobs, three nodes that die at any time, and requests meanwhile", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const product = yield* makeProduct
      const made = yield* licensesOf(product, 450)
      const { expires_at = 0 } = yield* get(made[0]!.id)
      const filter = { product_id: product.id }
      const jobs = yield* Effect.all(
        [1, 2].map((extend_by_days) => create({ action: "renew", filter, parameters: { extend_by_days } }))
      )
      const edits = yield* Effect.forkChild(
        Effect.forEach(made, ({ id }, index) =>
          index === 400
            ? client.licenses.revoke({ params: { id } })
            : client.licenses.update({ params: { id }, payload: { metadata: { index } } })
        )
      )
      const done = Effect.map(Effect.all(jobs.map(jobOf)), (all) =>
        all.reduce((sum, { changed, refused }) => sum + changed + refused, 0)
      )
      // Nodes that die in the middle leave their leases behind; others continue after their end.
      for (let round = 0; round < 6; round++) {
        const before = yield* done
        const fibers = yield* Effect.forEach([0, 1, 2], () => Effect.forkChild(at(round * 20)(runPass)))
        yield* Effect.repeat(done, { while: (now) => now < Math.min(before + 100 * round, 2 * made.length) })
        yield* Fiber.interruptAll(fibers)
      }
      yield* Fiber.join(edits)
      yield* at(200)(runPass)
      const [one, two] = yield* Effect.all(jobs.map(jobOf))
      for (const job of [one!, two!]) {
        assert.deepInclude(job, { status: "completed", matched: 450, unchanged: 0 })
        assert.strictEqual(job.changed + job.refused, 450)
        assert.isAtMost(job.refused, 1)
        const events = yield* eventsOf(job)
        assert.lengthOf(new Set(events.map(({ resource_id }) => resource_id)), job.changed)
        assert.lengthOf(events, job.changed)
      }
      for (const [index, { id }] of made.entries()) {
        const license = yield* get(id)
        if (index !== 400) {
          assert.strictEqual(license.expires_at, expires_at + 3 * 86_400_000)
          assert.deepStrictEqual(license.metadata, { index })
        }
      }
    })
  )
})
