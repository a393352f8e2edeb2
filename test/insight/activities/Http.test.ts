/** The activities feed over HTTP: its rows, page by page and by each filter. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Refusals } from "../../../src/insight/activities/Refusals.ts"
import {
  type ActivityJson,
  layerActivities,
  listActivities,
  makeEveryActivity,
  requestActivities
} from "../../support/http/Activities.ts"
import { assertRefused } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"

/** The fields that a filter can match by value. */
const fields = [
  "action",
  "source",
  "result_class",
  "status_code",
  "request_id",
  "license_id",
  "product_id",
  "customer_id",
  "order_id",
  "subscription_id",
  "device_id",
  "feature_code"
] as const

const pick = (row: ActivityJson, names: ReadonlyArray<(typeof fields)[number]>) =>
  Object.fromEntries(names.flatMap((name) => (row[name] === undefined ? [] : [[name, row[name]!]])))

const matching = (rows: ReadonlyArray<ActivityJson>, filter: { readonly [name: string]: unknown }) =>
  rows.filter((row) => Object.entries(filter).every(([name, value]) => row[name as keyof ActivityJson] === value))

layer(layerActivities(), { timeout: 60_000 })("The activities feed", (it) => {
  it.effect("shows what was done and what was refused, by which actor and with which result", () =>
    Effect.gen(function* () {
      yield* makeEveryActivity
      const rows = yield* listActivities()
      assert.deepStrictEqual(
        rows.map(({ sequence }) => sequence),
        Array.from({ length: rows.length }, (_, index) => rows.length - index)
      )
      const summaries = rows
        .toReversed()
        .map((row) => [row.action, row.source, row.status_code, row.code, row.feature_code].filter(Boolean).join(" "))
      assert.deepStrictEqual(summaries.slice(0, 18), [
        "api_key.create system",
        "customer.create management 201",
        "product.create management 201",
        "policy.create management 201",
        "license.create management 201",
        "product.create management 201",
        "policy.create management 201",
        "license.create management 201",
        "subscription.create management 201",
        "order.create management 201",
        "license.create management 201",
        "feature.create management 201 export",
        "feature.create management 201 gone",
        "feature.delete management 204 gone",
        "feature.update management 200 export",
        "license.assign_feature management 200 export",
        "license.activate runtime 200",
        "license.activate runtime 403 ACTIVATION_LIMIT_REACHED"
      ])
      assert.deepStrictEqual(summaries.slice(18), [
        "usage.consume runtime 200 export",
        "usage.reach_threshold runtime 200 export",
        "usage.exhaust runtime 200 export",
        "license.check runtime 404 DEVICE_NOT_FOUND",
        "usage.consume runtime 403 USAGE_LIMIT_EXCEEDED export",
        "usage.consume runtime 403 FEATURE_NOT_ENTITLED",
        "lease.check_out runtime 200",
        "license.suspend management 200",
        "license.reinstate management 200",
        "lease.check_out runtime 403 FLOATING_LIMIT_REACHED",
        "lease.heartbeat runtime 403 LICENSE_SUSPENDED",
        "license.validate runtime 403 LICENSE_SUSPENDED",
        "lease.heartbeat runtime 409 LEASE_NOT_ACTIVE",
        "license.activate runtime 200",
        "device.expire system",
        "license.activate runtime 200",
        "device.reset management 200",
        "license.validate runtime 403 HEARTBEAT_OVERDUE",
        "license.deactivate runtime 422 VALIDATION_ERROR"
      ])
    })
  )

  it.effect("names the related resources of each row, as far as they are known", () =>
    Effect.gen(function* () {
      const before = (yield* listActivities()).length
      const { customer, device, feature, license, order, ordered, silent, seat, subscription } =
        yield* makeEveryActivity
      const rows = (yield* listActivities()).filter(({ sequence }) => sequence > before)
      const links = { license_id: license.id, product_id: license.product_id, customer_id: customer.id }
      const one = (filter: object) => {
        const matches = matching(rows, filter as never)
        assert.strictEqual(matches.length, 1, JSON.stringify(filter))
        const { sequence: _, occurred_at: __, request_id: ___, event_sequence: ____, ...row } = matches[0]!
        return row
      }
      const runtime = { source: "runtime", actor_type: "license", ip_address: "127.0.0.1" } as const
      assert.deepStrictEqual(one({ code: "USAGE_LIMIT_EXCEEDED" }), {
        action: "usage.consume",
        ...runtime,
        result_class: "refused",
        status_code: 403,
        code: "USAGE_LIMIT_EXCEEDED",
        actor_id: license.id,
        ...links,
        device_id: device.device_id,
        feature_code: "export"
      } as never)
      assert.deepStrictEqual(one({ action: "lease.check_out", status_code: 200 }), {
        action: "lease.check_out",
        ...runtime,
        result_class: "succeeded",
        status_code: 200,
        actor_id: license.id,
        ...links,
        device_id: seat.device_id
      } as never)
      assert.strictEqual(one({ code: "LEASE_NOT_ACTIVE" }).device_id, seat.device_id, "the lease leads to its device")
      assert.strictEqual(one({ code: "DEVICE_NOT_FOUND" }).device_id, device.device_id, "it is known by now")
      assert.strictEqual(one({ code: "VALIDATION_ERROR" }).license_id, silent.id)
      const created = one({ action: "license.create", license_id: ordered.id })
      assert.deepInclude(created, { order_id: order.id, subscription_id: subscription.id })
      assert.deepInclude(one({ action: "feature.update" }), {
        product_id: license.product_id,
        feature_code: feature.code
      })
      assert.deepInclude(one({ action: "order.create" }), { order_id: order.id, subscription_id: subscription.id })
      assert.deepInclude(one({ action: "device.expire" }), { actor_id: "clock", license_id: silent.id })
    })
  )

  it.effect("shows no field that identifies a machine, and no key or token", () =>
    Effect.gen(function* () {
      const license = yield* issue()
      const { pass } = yield* Refusals
      const secret = { fingerprint: "FINGERPRINT", hostname: "HOSTNAME", os: "SYSTEM", app_version: "VERSION" }
      const container = { is_container: true, container_id: "CONTAINER", pod_name: "POD" }
      for (const payload of [secret, container]) {
        yield* Effect.flip(license.runtime.validate({ payload }))
        yield* Effect.flip(
          license.runtime.consume({ payload: { ...payload, feature_code: "FEATURE", event_id: "EVENT" } })
        )
      }
      yield* Effect.flip(license.runtime.checkin({ payload: { lease_token: "TOKEN-OF-A-LEASE" } }))
      yield* pass
      const { text, json } = yield* requestActivities(`?license_id=${license.id}&result_class=refused`)
      assert.strictEqual((json as { readonly data: ReadonlyArray<unknown> }).data.length, 5)
      for (const value of [
        ...Object.values(secret),
        "CONTAINER",
        "POD",
        "FEATURE",
        "TOKEN-OF-A-LEASE",
        license.license_key
      ]) {
        assert.notInclude(text, value)
      }
    })
  )

  it.effect("returns for each filter the matching rows of the whole feed, and for all filters together", () =>
    Effect.gen(function* () {
      const { license, silent } = yield* makeEveryActivity
      const rows = yield* listActivities()
      for (const name of fields) {
        const values = new Set(rows.flatMap((row) => (row[name] === undefined ? [] : [row[name]])))
        assert.isAtLeast(values.size, name === "result_class" ? 2 : 1, name)
        for (const value of values) {
          // Every request has its own id, so the ids of the newest rows are enough.
          if (name === "request_id" && rows.findIndex((row) => row[name] === value) > 30) continue
          const filter = { [name]: value! }
          assert.deepStrictEqual(yield* listActivities(filter, 20), matching(rows, filter), JSON.stringify(filter))
        }
        if (name === "action" || name === "source" || name === "result_class" || name === "status_code") continue
        assert.deepStrictEqual(yield* listActivities({ [name]: "none" }), [])
      }
      for (const row of rows.filter(({ license_id: id }) => id === license.id || id === silent.id)) {
        const filter = pick(row, fields)
        assert.deepStrictEqual(yield* listActivities(filter), matching(rows, filter))
        const next = new Date(Date.parse(row.occurred_at) + 1).toISOString()
        assert.deepStrictEqual(
          yield* listActivities({ from: row.occurred_at, to: next, ...pick(row, ["action", "source"]) }),
          matching(rows, { occurred_at: row.occurred_at, action: row.action, source: row.source })
        )
      }
    })
  )

  it.effect("is split into pages that return each row once while others are added", () =>
    Effect.gen(function* () {
      yield* makeEveryActivity
      const rows = yield* listActivities()
      for (const limit of [5, 17, rows.length - 1, rows.length])
        assert.deepStrictEqual(yield* listActivities({}, limit), rows)
      const { json } = yield* requestActivities(`?limit=${Math.min(200, rows.length)}`)
      const { page_info } = json as { readonly page_info: { readonly next_cursor: unknown } }
      assert.strictEqual(page_info.next_cursor, rows.length <= 200 ? null : rows[199]!.sequence)
      for (const cursor of [1, 2, rows.length, 9_007_199_254_740_991]) {
        const { json } = yield* requestActivities(`?cursor=${cursor}&limit=200`)
        const below = rows.filter(({ sequence }) => sequence < cursor).slice(0, 200)
        assert.deepStrictEqual((json as { readonly data: ReadonlyArray<ActivityJson> }).data, below)
      }
    })
  )

  it.effect("refuses unknown parameters and contradictory ones", () =>
    Effect.gen(function* () {
      for (const [query, detail] of [
        ["from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z", "to"],
        ["from=2030-01-02T00:00:00Z&to=2030-01-02T00:00:00Z", "to"],
        ["from=yesterday", "from"],
        ["to=2030-13-01T00:00:00Z", "to"],
        ["action=license.activated", "action"],
        ["source=cron", "source"],
        ["result_class=success", "result_class"],
        ["status_code=99", "status_code"],
        ["status_code=200.0", "status_code"],
        ["status_code=500", "status_code"],
        ["status_code=200&result_class=refused", "status_code"],
        ["status_code=403&result_class=succeeded", "status_code"],
        ["license_id=%00", "license_id"],
        ["cursor=0", "cursor"],
        ["limit=0", "limit"],
        ["group_by=license_id", "group_by"],
        ["bucket=1h", "bucket"],
        ["tz=UTC", "tz"],
        ["colour=red", "colour"]
      ] as const) {
        assertRefused(yield* requestActivities(`?${query}`), 400, "INVALID_QUERY", detail)
      }
      assert.strictEqual((yield* requestActivities("?limit=900")).status, 200)
    })
  )
})
