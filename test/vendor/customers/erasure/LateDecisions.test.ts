/** What was decided before an erasure began, and is written after it has ended. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { EventLog } from "../../../../src/ledger/events/EventLog.ts"
import { transfer } from "../../../../src/licensing/changes/Transfer.ts"
import { update } from "../../../../src/licensing/changes/Update.ts"
import { Journal } from "../../../../src/licensing/engine/Journal.ts"
import { LicenseActors } from "../../../../src/licensing/engine/LicenseActors.ts"
import { LicenseLookups } from "../../../../src/licensing/lookups/LicenseLookups.ts"
import { LicenseStore } from "../../../../src/licensing/lookups/LicenseStore.ts"
import { Erasures } from "../../../../src/vendor/customers/erasure/Erasures.ts"
import { holdLock, untilBlocked } from "../../../support/database/Database.ts"
import { assertGone, layerErasures, withCustomer } from "../../../support/database/Erasures.ts"
import { assertAnswered, assertRefused } from "../../../support/http/Http.ts"
import { freshKey, issue } from "../../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../../support/http/TestServer.ts"

/** A node on which `meanwhile` happens right after it has read a customer for a decision, the first time. */
const nodeWith = <R>(meanwhile: Effect.Effect<unknown, unknown, R>) => {
  let reads = 0
  const layerLookups = Layer.effect(
    LicenseLookups,
    Effect.gen(function* () {
      const real = yield* LicenseLookups
      const context = yield* Effect.context<R>()
      const once = Effect.suspend(() =>
        ++reads > 1 ? Effect.void : Effect.orDie(Effect.provideContext(meanwhile, context))
      )
      return LicenseLookups.of({
        ...real,
        inOneSnapshot: (id, lookups) => Effect.tap(real.inOneSnapshot(id, lookups), () => once)
      })
    })
  ).pipe(Layer.provide(LicenseLookups.layer))
  const layerNode = LicenseActors.layer.pipe(
    Layer.provide(Journal.layer),
    Layer.provide([LicenseStore.layer, layerLookups, EventLog.layer])
  )
  return Effect.map(Layer.build(Layer.fresh(layerNode)), (node) => ({
    node: Context.get(node, LicenseActors),
    reads: () => reads
  }))
}

layer(layerErasures, { timeout: 60_000 })("After the end of an erasure", (it) => {
  it.effect("a transfer that was decided before it began is decided again", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { email, erase, formerName, id, name } = yield* withCustomer
      const license = yield* issue()
      const { node, reads } = yield* nodeWith(erase)
      yield* node.ask(license.id, transfer, { customer_id: id })
      assert.strictEqual(reads(), 2)
      const { customer_id, customer_name = "" } = yield* client.licenses.get({ params: { id: license.id } })
      assert.deepStrictEqual([customer_id, customer_name], [id, ""])
      yield* assertGone([name, formerName, email])
    })
  )

  it.effect("an edit that was decided before it began is decided again on what is left", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { alias, email, erase, id, name } = yield* withCustomer
      const license = yield* issue({}, { customer_id: id, customer_name: name })
      const { node, reads } = yield* nodeWith(erase)
      yield* node.ask(license.id, update, { customer_name: alias })
      assert.strictEqual(reads(), 2)
      const [event] = (yield* client.events.list({ query: { resource_id: license.id } })).items
      assert.deepStrictEqual(event?.metadata["changes"], { customer_name: { old: null, new: alias } } as never)
      yield* assertGone([name, email])
    })
  )

  it.effect("no response is stored that was made before it went through the stored responses", () =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const { step } = yield* Erasures
      const { id: erased, request } = yield* withCustomer
      const { id, name } = yield* withCustomer
      const license = yield* issue({}, { customer_id: id, customer_name: name })
      const key = freshKey()
      // Nothing changes, so the response is the license as it is.
      const edit = send({ method: "PATCH", path: license.path, body: { customer_name: name }, headers: key })
      const { release } = yield* holdLock((sql) => sql`LOCK TABLE idempotent_answers IN SHARE MODE`)
      const editing = yield* Effect.forkChild(edit, { startImmediately: true })
      yield* untilBlocked
      // What an erasure does before it reads the responses.
      yield* sql`UPDATE erasure_progress SET changes = changes + 1`
      yield* release
      assertRefused(yield* Fiber.join(editing), 409, "IDEMPOTENCY_IN_PROGRESS", "Idempotency-Key")
      assertAnswered(yield* edit, 200)
      assert.strictEqual((yield* edit).headers["idempotency-replayed"], "true")

      yield* request(freshKey())
      const place = sql<{ readonly phase: string; readonly position: string; readonly changes: number }>`
        SELECT phase, position, changes FROM erasures, erasure_progress WHERE customer_id = ${erased}`
      const before = yield* place.pipe(
        Effect.tap(([row]) => (row!.phase === "responses" ? Effect.void : step(erased))),
        Effect.repeat({ until: ([row]) => row!.phase === "responses" })
      )
      yield* step(erased)
      assert.strictEqual((yield* place)[0]!.changes, before[0]!.changes + 1)
      while (yield* step(erased));
    })
  )
})

layer(layerErasures, { timeout: 60_000 })("While a customer is being erased", (it) => {
  it.effect("a transfer that has read the customer waits for the erasure to begin, and is decided again", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { email, erase, formerName, id, name } = yield* withCustomer
      const license = yield* issue()
      // What the begin of an erasure writes, not yet committed.
      const { release } = yield* holdLock((sql) =>
        sql`UPDATE customers SET name = '', email = NULL, metadata = '{}', erasure_revision = erasure_revision + 1 WHERE id = ${id}`.pipe(
          Effect.andThen(sql`SELECT FROM customers WHERE id = ${id} FOR UPDATE`)
        )
      )
      const params = { id: license.id }
      const moving = yield* Effect.forkChild(client.licenses.transfer({ params, payload: { customer_id: id } }), {
        startImmediately: true
      })
      yield* untilBlocked
      yield* release
      yield* Fiber.join(moving)
      assert.strictEqual((yield* client.licenses.get({ params })).customer_name ?? "", "")
      yield* erase
      yield* assertGone([name, formerName, email])
    })
  )

  it.effect("a license that has left it keeps a name that it gets at the last moment", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const { step } = yield* Erasures
      const { alias, id, name, request } = yield* withCustomer
      const license = yield* issue({}, { customer_id: id, customer_name: name })
      yield* client.licenses.transfer({ params: { id: license.id }, payload: { customer_id: "" } })
      yield* request(freshKey())
      yield* sql<{ readonly phase: string }>`SELECT phase FROM erasures WHERE customer_id = ${id}`.pipe(
        Effect.tap(([row]) => (row!.phase === "transfers" ? Effect.void : step(id))),
        Effect.repeat({ until: ([row]) => row!.phase === "transfers" })
      )
      const changes = { changes: { customer_name: { old: name, new: alias } } }
      const { release } = yield* holdLock((sql) =>
        Effect.andThen(
          sql`UPDATE licenses SET customer_name = ${alias}, revision = revision + 1 WHERE id = ${license.id}`,
          sql`
            WITH next AS (UPDATE event_sequence SET last = last + 1 RETURNING last)
            INSERT INTO event_log (sequence, event_type, actor_type, actor_id, resource_type, resource_id, metadata, created_at)
            SELECT last, 'license.updated', 'system', 'test', 'license', ${license.id}, ${JSON.stringify(changes)}::text::jsonb, now()
            FROM next`
        )
      )
      const stepping = yield* Effect.forkChild(step(id), { startImmediately: true })
      yield* untilBlocked
      yield* release
      yield* Fiber.join(stepping)
      while (yield* step(id));
      assert.strictEqual((yield* client.licenses.get({ params: { id: license.id } })).customer_name, alias)
      yield* assertGone([name])
    })
  )

  it.effect("orders and subscriptions do not come to it, leave it or get metadata", () =>
    Effect.gen(function* () {
      const { client, send } = yield* TestServer
      const { step } = yield* Erasures
      const { code, id, email, name, request } = yield* withCustomer
      const { product_id } = yield* issue()
      const day = (n: number) => `2030-01-0${n}T00:00:00Z`
      const bodies = {
        orders: { external_system: "shop", status: "paid" },
        subscriptions: {
          external_system: "shop",
          status: "active",
          current_period_start: day(1),
          current_period_end: day(2)
        }
      }
      const kinds = ["orders", "subscriptions"] as const
      const create = (kind: (typeof kinds)[number], body: object) =>
        send({ method: "POST", path: `/api/v1/products/${product_id}/${kind}`, body: { ...bodies[kind], ...body } })
      const made = yield* Effect.forEach(kinds, (kind) =>
        Effect.map(create(kind, { external_id: code, customer_id: id, metadata: { for: name } }), ({ json }) => ({
          kind,
          path: `/api/v1/${kind}/${(json as { data: { id: string } }).data.id}`
        }))
      )
      yield* request(freshKey())
      for (const { kind, path } of made) {
        const refused = [
          create(kind, { external_id: `${code}-2`, customer_id: id }),
          send({ method: "PATCH", path, body: { metadata: { for: email } } }),
          send({ method: "PATCH", path, body: { customer_id: "" } })
        ]
        for (const change of refused) assertRefused(yield* change, 409, "CONFLICT", "customer_id")
        assertAnswered(yield* send({ method: "PATCH", path, body: { external_id: `${code}-3` } }), 200)
      }
      while (yield* step(id));
      yield* assertGone([name, email])
      for (const { path } of made) {
        assertAnswered(yield* send({ method: "PATCH", path, body: { customer_id: "" } }), 200)
        assertAnswered(yield* send({ method: "PATCH", path, body: { customer_id: id } }), 200)
      }
      assert.strictEqual((yield* client.customers.get({ params: { id } })).name, "")
    })
  )
})
