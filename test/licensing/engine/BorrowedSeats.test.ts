/** Borrowed seats on a real database, with two nodes: exact seats, every end, and what reads and sweeps make of them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { seatsNow } from "../../../src/insight/reports/overview/OverviewSamples.ts"
import { blacklist, reset } from "../../../src/licensing/changes/DeviceActions.ts"
import { transfer } from "../../../src/licensing/changes/Transfer.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { checkin, checkout, heartbeat } from "../../../src/licensing/rules/Floating.ts"
import { reinstate, revoke, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { Database } from "../../support/database/Database.ts"
import { fromNoon, twoNodes } from "../../support/database/LicenseNodes.ts"
import {
  checkoutOf,
  deviceIdOf,
  eventCounts,
  eventsAbout,
  leaseCommandOf,
  leaseStates,
  type StoredLicense,
  storeOne
} from "../../support/database/StoredLicenses.ts"
import { day, minute, noon } from "../../support/rules/Licenses.ts"

const until = noon + 3 * day

const lending = (max_floating_users: number) =>
  storeOne({ license: { expires_at: noon + 30 * day }, policy: { max_floating_users, borrow_days_max: 7 } })

const borrowing = (license: StoredLicense, name: string, end = until) => ({ ...checkoutOf(license, name), until: end })

const codeOf = <A, E extends { readonly code: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), ({ code }) => code)

const seatOf = Effect.fnUntraced(function* ({ license }: StoredLicense) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ readonly borrowed_until: number | null; readonly expires_at: number }>`
    SELECT borrowed_until, expires_at FROM leases WHERE license_id = ${license} AND status = 'live'`
})

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("borrowed seats", (it) => {
  it.effect("are exactly as many as there are, however many machines borrow at two nodes at once", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes } = yield* twoNodes
        const license = yield* lending(7)
        const results = yield* Effect.forEach(
          Array.from({ length: 48 }),
          (_, index) =>
            Effect.result(nodes[index % 2]!.ask(license.license, checkout, borrowing(license, `m${index}`))),
          { concurrency: "unbounded" }
        )
        assert.lengthOf(results.filter(Result.isSuccess), 7)
        const refusals = results.filter(Result.isFailure).map(({ failure }) => failure.code)
        assert.deepStrictEqual(Array.from(new Set(refusals)), ["FLOATING_LIMIT_REACHED"])
        assert.deepStrictEqual(yield* leaseStates(license.license), { "live active": 7 })
        for (const seat of yield* seatOf(license))
          assert.deepStrictEqual(seat, { borrowed_until: until, expires_at: until })
      })
    )
  )

  it.effect("end last where one machine borrows at two nodes at once for different times", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes } = yield* twoNodes
        const license = yield* lending(1)
        const ends = Array.from({ length: 12 }, (_, index) => noon + (index % 5) * day + minute)
        const seats = yield* Effect.forEach(
          ends,
          (end, index) => nodes[index % 2]!.ask(license.license, checkout, borrowing(license, "m", end)),
          { concurrency: "unbounded" }
        )
        const last = noon + 4 * day + minute
        assert.deepStrictEqual(yield* seatOf(license), [{ borrowed_until: last, expires_at: last }])
        assert.strictEqual(Math.max(...seats.map((seat) => Date.parse(seat.borrowed_until ?? ""))), last)
      })
    )
  )

  it.effect("stay taken at every node while license and device lose their access, until they are due", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes, sweeps } = yield* twoNodes
        const sql = yield* SqlClient.SqlClient
        const license = yield* lending(1)
        const device_id = deviceIdOf(license, "m")
        const seat = yield* nodes[0].ask(license.license, checkout, borrowing(license, "m"))
        const takes = (node: 0 | 1) => nodes[node].ask(license.license, checkout, checkoutOf(license, "other"))
        const taken = (node: 0 | 1) => Effect.map(codeOf(takes(node)), (code) => assert.include(code, "LIMIT_REACHED"))
        yield* nodes[0].ask(license.license, suspend, undefined)
        yield* nodes[1].ask(license.license, reinstate, undefined)
        yield* taken(0)
        yield* nodes[1].ask(license.license, update, { expires_at: noon + minute })
        yield* TestClock.adjust("1 day")
        yield* Effect.all([sweeps[0].expiry, sweeps[1].lease], { discard: true })
        assert.deepStrictEqual(yield* leaseStates(license.license), { "live active": 1 })
        const [counted] = yield* sql<{ readonly count: number }>`
          SELECT count FROM (${seatsNow(sql, noon + day)}) AS seats WHERE product_id =
            (SELECT product_id FROM licenses WHERE id = ${license.license})`
        assert.strictEqual(counted?.count, 1)
        yield* nodes[0].ask(license.license, update, { expires_at: noon + 20 * day })
        yield* nodes[0].ask(license.license, reset, { device_id })
        assert.strictEqual(
          yield* codeOf(nodes[1].ask(license.license, heartbeat, leaseCommandOf(license, seat))),
          "LEASE_NOT_ACTIVE"
        )
        yield* taken(1)
        yield* nodes[1].ask(license.license, blacklist, { device_id })
        yield* TestClock.setTime(until - 1)
        yield* taken(0)
        yield* TestClock.setTime(until)
        yield* takes(1)
        assert.deepStrictEqual(yield* leaseStates(license.license), { "expired blacklisted": 1, "live active": 1 })
        const changes = yield* eventsAbout(device_id, "device.reset")
        assert.deepInclude(changes[0]?.metadata, { borrowed_until: new Date(until).toISOString() })
      })
    )
  )

  it.effect("are swept when they are due, with their event, and free no device that was reset", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes, sweeps } = yield* twoNodes
        const license = yield* lending(2)
        yield* nodes[0].ask(license.license, checkout, borrowing(license, "reset"))
        yield* nodes[0].ask(license.license, checkout, borrowing(license, "kept"))
        yield* nodes[0].ask(license.license, reset, { device_id: deviceIdOf(license, "reset") })
        yield* TestClock.setTime(until - 1)
        yield* sweeps[0].lease
        assert.deepStrictEqual(yield* leaseStates(license.license), { "live active": 1, "live reset": 1 })
        yield* TestClock.setTime(until)
        yield* sweeps[1].lease
        assert.deepStrictEqual(yield* leaseStates(license.license), { "expired expired": 1, "expired reset": 1 })
        assert.deepStrictEqual(yield* eventCounts(license.license), {
          "device.reset": 1,
          "lease.checked_out": 2,
          "lease.expired": 2
        })
      })
    )
  )

  it.effect(
    "lose what heartbeats added when the license is suspended, and are swept at the time that was borrowed",
    () =>
      fromNoon(
        Effect.gen(function* () {
          const { nodes, sweeps } = yield* twoNodes
          const license = yield* lending(1)
          const seat = yield* nodes[0].ask(license.license, checkout, borrowing(license, "m"))
          yield* TestClock.setTime(until - minute)
          yield* nodes[1].ask(license.license, heartbeat, leaseCommandOf(license, seat))
          assert.deepStrictEqual(yield* seatOf(license), [{ borrowed_until: until, expires_at: until + 29 * minute }])
          yield* nodes[0].ask(license.license, suspend, undefined)
          assert.deepStrictEqual(yield* seatOf(license), [{ borrowed_until: until, expires_at: until }])
          yield* TestClock.setTime(until)
          yield* sweeps[0].lease
          assert.deepStrictEqual(yield* leaseStates(license.license), { "expired expired": 1 })
        })
      )
  )

  it.effect("are free at every node as soon as they are given back, released or revoked", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes } = yield* twoNodes
        const license = yield* lending(1)
        const borrow = (name: string) => nodes[0].ask(license.license, checkout, borrowing(license, name))
        const seat = yield* borrow("a")
        yield* nodes[1].ask(license.license, suspend, undefined)
        yield* nodes[1].ask(license.license, checkin, leaseCommandOf(license, seat))
        yield* nodes[0].ask(license.license, reinstate, undefined)
        yield* borrow("b")
        yield* nodes[1].ask(license.license, reset, { device_id: deviceIdOf(license, "b"), release_borrowed: true })
        yield* borrow("c")
        yield* nodes[1].ask(license.license, transfer, { reset_devices: true })
        assert.strictEqual(yield* codeOf(borrow("d")), "FLOATING_LIMIT_REACHED")
        yield* nodes[1].ask(license.license, transfer, { reset_devices: true, release_borrowed: true })
        yield* borrow("d")
        yield* nodes[1].ask(license.license, revoke, undefined)
        assert.deepStrictEqual(yield* leaseStates(license.license), {
          "checked_in reset": 1,
          "ended deactivated": 1,
          "ended reset": 2
        })
      })
    )
  )
})
