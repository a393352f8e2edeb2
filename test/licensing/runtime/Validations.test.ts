/** Validations are counted by license and hour, exactly, on any number of nodes, and reports show them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { Validations } from "../../../src/licensing/runtime/Validations.ts"
import { layerActivities, startActivitiesNode } from "../../support/http/Activities.ts"
import { assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const hour = 3_600_000
const machine = { fingerprint: "m" }

/** The service's time of day. */
const now = Effect.map(
  Effect.flatMap(TestServer, ({ send }) => send({ path: "/health" })),
  ({ json }) => Date.parse((json as { readonly meta: { readonly timestamp: string } }).meta.timestamp)
)

const counts = (licenseId: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly hour: number; readonly validations: number; readonly refused: number }>`
      SELECT hour, validations, refused FROM license_validations WHERE license_id = ${licenseId} ORDER BY hour`
  )

layer(layerActivities(), { timeout: 60_000 })("Validations", (it) => {
  it.effect("of several licenses on two nodes are all there once the nodes have stopped", () =>
    Effect.gen(function* () {
      const licenses = yield* Effect.replicateEffect(issue({ max_activations: 0 }), 8)
      const scope = yield* Scope.make()
      const nodes = yield* Effect.replicateEffect(Scope.provide(startActivitiesNode(), scope), 2)
      const use = Effect.fnUntraced(function* (
        { server, validations }: (typeof nodes)[number],
        { license_key }: (typeof licenses)[number],
        index: number
      ) {
        const { runtime } = yield* server.connect({ licenseKey: license_key })
        yield* runtime.activate({ payload: machine })
        for (let times = 0; times < 10 + index; times++) {
          yield* runtime.validate({ payload: machine })
          if (times % 4 === 0) yield* Effect.flip(runtime.validate({ payload: { fingerprint: "unknown" } }))
          yield* runtime.check({ payload: machine })
          // Both nodes add to the same rows at the same time.
          if (times % 3 === 0) yield* validations.pass
        }
      })
      yield* Effect.all(
        nodes.flatMap((node) => licenses.map((license, index) => use(node, license, index))),
        { concurrency: "unbounded" }
      )
      yield* Scope.close(scope, Exit.void)
      for (const [index, { id }] of licenses.entries()) {
        const hours = yield* counts(id)
        const sum = (name: "validations" | "refused") => hours.reduce((total, row) => total + row[name], 0)
        assert.deepStrictEqual(
          [sum("validations"), sum("refused")],
          [2 * (10 + index), 2 * Math.ceil((10 + index) / 4)]
        )
      }
    })
  )

  it.effect("belong to the hour of the service's clock, and reports show them by hours and days", () =>
    Effect.gen(function* () {
      const { advance, client, send } = yield* TestServer
      const { pass } = yield* Validations
      const customer = yield* client.customers.create({ payload: { name: "C", code: "validated" } })
      const { id, runtime } = yield* issue({ grace_period_days: 30 }, { customer_id: customer.id })
      yield* runtime.activate({ payload: machine })
      // On to two minutes before the last full hour of a day.
      const day = 24 * hour
      yield* advance(Math.round((day - ((yield* now) % day) + 23 * hour - 120_000) / 1_000))
      const moment = yield* now
      const first = moment - (moment % hour)
      const validate = (times: number) => Effect.replicateEffect(runtime.validate({ payload: machine }), times)
      yield* validate(3)
      yield* advance(180)
      yield* validate(2)
      yield* Effect.flip(runtime.validate({ payload: { fingerprint: "unknown" } }))
      yield* pass
      yield* validate(1)
      yield* advance(3_600)
      yield* validate(4)
      yield* pass
      const hours = [
        { bucket_start: first, validations: 3, refused: 0 },
        { bucket_start: first + hour, validations: 3, refused: 1 },
        { bucket_start: first + 2 * hour, validations: 4, refused: 0 }
      ]
      assert.deepStrictEqual(
        yield* counts(id),
        hours.map(({ bucket_start, ...row }) => ({ hour: bucket_start, ...row }))
      )
      const audit = Effect.fnUntraced(function* (query: object) {
        return (yield* client.reports.licenseAudit({ query: { license_id: id, ...query } })).validations
      })
      assert.deepStrictEqual(yield* audit({ bucket: "1h" }), {
        validations: 10,
        refused: 1,
        bucket: "1h",
        buckets: hours
      })
      assert.deepStrictEqual(yield* audit({}), {
        validations: 10,
        refused: 1,
        bucket: "1d",
        buckets: [
          { bucket_start: first - 22 * hour, validations: 6, refused: 1 },
          { bucket_start: first + 2 * hour, validations: 4, refused: 0 }
        ]
      })
      assert.deepInclude(yield* audit({ from: first + hour, to: first + 2 * hour }), { validations: 3, refused: 1 })
      const query = { customer_id: customer.id, from: first + hour }
      const summary = yield* client.reports.customerSummary({ query })
      assert.deepStrictEqual(summary.validations, { validations: 7, refused: 1 })
      const path = `/api/v1/reports/license-audit?license_id=${id}&bucket=1w`
      assertRefused(yield* send({ path }), 400, "INVALID_QUERY", "bucket")
    })
  )
})
