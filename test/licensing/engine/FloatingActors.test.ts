/**
 * Floating seats on a real database, with two nodes: exact seats, tokens that end immediately, and every end of a
 * lease.
 */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { blacklist, reset, unblacklist } from "../../../src/licensing/changes/DeviceActions.ts"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { activate, check, deactivate, validate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { checkin, checkout, heartbeat } from "../../../src/licensing/rules/Floating.ts"
import { reinstate, revoke, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { issueOffline } from "../../../src/licensing/rules/Offline.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import {
  assertEachOnce,
  checkoutOf,
  deviceIdOf,
  eventCounts,
  fillLeases,
  leaseCommandOf,
  leaseStates,
  makeLicense,
  requestOf,
  stored
} from "../../support/database/StoredLicenses.ts"

const nodes = Effect.all([makeNode, makeNode])

const each = <A, E, R>(n: number, f: (index: number) => Effect.Effect<A, E, R>) =>
  Effect.forEach(Array.from({ length: n }), (_, index) => Effect.result(f(index)), { concurrency: "unbounded" })

const codeOf = <A, E extends { readonly code: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), ({ code }) => code)

layer(Database.layer, { timeout: 60_000 })("floating seats", (it) => {
  it.effect("64 machines on two nodes get exactly ten seats, and every other one is refused", () =>
    Effect.gen(function* () {
      const both = yield* nodes
      const license = yield* makeLicense({ max_floating_users: 10 })
      const results = yield* each(64, (index) =>
        both[index % 2]!.ask(license.license, checkout, checkoutOf(license, `m${index}`))
      )
      assert.lengthOf(results.filter(Result.isSuccess), 10)
      const refusals = results.filter(Result.isFailure).map(({ failure }) => failure.code)
      assert.deepStrictEqual(Array.from(new Set(refusals)), ["FLOATING_LIMIT_REACHED"])
      assert.deepStrictEqual(yield* leaseStates(license.license), { "live active": 10 })
      assert.deepStrictEqual(yield* eventCounts(license.license), { "lease.checked_out": 10 })
      assert.strictEqual((yield* stored(license.license)).active, 0)
    })
  )

  it.effect("a seat that is released or expires on one node is free on the other, without a sweep", () =>
    Effect.gen(function* () {
      const [one, other] = yield* nodes
      const license = yield* makeLicense({ max_floating_users: 2 })
      const first = yield* one.ask(license.license, checkout, checkoutOf(license, "a"))
      yield* TestClock.adjust("10 minutes")
      const second = yield* other.ask(license.license, checkout, checkoutOf(license, "b"))
      const third = checkoutOf(license, "c")
      assert.strictEqual(yield* codeOf(one.ask(license.license, checkout, third)), "FLOATING_LIMIT_REACHED")
      yield* TestClock.adjust("20 minutes")
      yield* one.ask(license.license, checkout, third)
      assert.strictEqual(
        yield* codeOf(other.ask(license.license, heartbeat, leaseCommandOf(license, first))),
        "LEASE_EXPIRED"
      )
      assert.strictEqual(
        yield* codeOf(one.ask(license.license, validate, requestOf(license, "a"))),
        "DEVICE_NOT_ACTIVE"
      )
      yield* one.ask(license.license, checkin, leaseCommandOf(license, second))
      yield* other.ask(license.license, checkout, checkoutOf(license, "d"))
      assert.deepStrictEqual(yield* leaseStates(license.license), {
        "checked_in deactivated": 1,
        "expired expired": 1,
        "live active": 2
      })
      assert.deepStrictEqual(yield* eventCounts(license.license), {
        "lease.checked_in": 1,
        "lease.checked_out": 4,
        "lease.expired": 1
      })
      yield* assertEachOnce(["lease.expired", "lease.checked_in", "lease.checked_out"])
    })
  )

  it.effect("one machine that checks out on both nodes at once has one seat, and only the last token is valid", () =>
    Effect.gen(function* () {
      const both = yield* nodes
      const license = yield* makeLicense({ max_floating_users: 1 })
      const taken = yield* each(40, (index) =>
        both[index % 2]!.ask(license.license, checkout, checkoutOf(license, "m"))
      )
      assert.lengthOf(taken.filter(Result.isSuccess), 40)
      assert.deepStrictEqual(yield* leaseStates(license.license), { "live active": 1, "superseded active": 39 })
      const beats = yield* Effect.forEach(taken, (result, index) =>
        Effect.result(
          both[(index + 1) % 2]!.ask(license.license, heartbeat, leaseCommandOf(license, Result.getOrThrow(result)))
        )
      )
      assert.lengthOf(beats.filter(Result.isSuccess), 1)
      for (const { failure } of beats.filter(Result.isFailure)) assert.strictEqual(failure.code, "LEASE_NOT_ACTIVE")
    })
  )

  it.effect("a checkout that another node decides again, after its lease was superseded, is recorded once", () =>
    Effect.gen(function* () {
      const [one, other] = yield* nodes
      const license = yield* makeLicense({ max_floating_users: 1 })
      const command = checkoutOf(license, "m")
      yield* one.ask(license.license, checkout, command)
      yield* one.ask(license.license, checkout, checkoutOf(license, "m"))
      yield* other.ask(license.license, checkout, { ...command, isRepeated: true })
      assert.deepStrictEqual(yield* leaseStates(license.license), { "live active": 1, "superseded active": 1 })
      assert.deepStrictEqual(yield* eventCounts(license.license), { "lease.checked_out": 2 })
    })
  )

  it.effect("a heartbeat on either node extends the seat by a full term", () =>
    Effect.gen(function* () {
      const both = yield* nodes
      const license = yield* makeLicense({ max_floating_users: 1 })
      const seat = leaseCommandOf(license, yield* both[0].ask(license.license, checkout, checkoutOf(license, "m")))
      for (let beat = 0; beat < 6; beat++) {
        yield* TestClock.adjust("29 minutes")
        const { lease_expires_at } = yield* both[beat % 2]!.ask(license.license, heartbeat, seat)
        assert.strictEqual(Date.parse(lease_expires_at), (yield* Clock.currentTimeMillis) + 30 * 60_000)
      }
      assert.deepStrictEqual(yield* leaseStates(license.license), { "live active": 1 })
      yield* TestClock.adjust("30 minutes")
      assert.strictEqual(yield* codeOf(both[0].ask(license.license, checkin, seat)), "LEASE_NOT_ACTIVE")
      assert.isTrue((yield* both[1].ask(license.license, heartbeat, seat)).renewed)
      assert.deepStrictEqual(yield* leaseStates(license.license), { "live active": 1 })
      assert.isUndefined((yield* both[0].ask(license.license, heartbeat, seat)).renewed)
    })
  )

  it.effect("a seat counts as an activation on the other node, but not for an envelope, until it is released", () =>
    Effect.gen(function* () {
      const [one, other] = yield* nodes
      const license = yield* makeLicense({ max_floating_users: 1, max_activations: 1 })
      const request = requestOf(license, "m")
      const seat = leaseCommandOf(license, yield* one.ask(license.license, checkout, checkoutOf(license, "m")))
      yield* other.ask(license.license, validate, request)
      yield* other.ask(license.license, check, request)
      yield* other.ask(license.license, consume, { ...request, feature_code: "export", event_id: "e", amount: 1 })
      assert.strictEqual(yield* codeOf(other.ask(license.license, issueOffline, request)), "DEVICE_NOT_ACTIVE")
      yield* other.ask(license.license, activate, request)
      yield* one.ask(license.license, issueOffline, request)
      assert.strictEqual((yield* stored(license.license)).active, 1)
      yield* one.ask(license.license, deactivate, request)
      yield* other.ask(license.license, validate, request)
      assert.strictEqual(yield* codeOf(other.ask(license.license, issueOffline, request)), "DEVICE_NOT_ACTIVE")
      yield* one.ask(license.license, checkin, seat)
      assert.strictEqual(yield* codeOf(other.ask(license.license, validate, request)), "DEVICE_NOT_ACTIVE")
      assert.deepStrictEqual(yield* leaseStates(license.license), { "checked_in deactivated": 1 })
    })
  )

  it.effect("an operation that ends a license or device on one node ends its seats on the other", () =>
    Effect.gen(function* () {
      const [one, other] = yield* nodes
      const license = yield* makeLicense({ max_floating_users: 9, max_activations: 9 })
      const id = license.license
      const take = Effect.fnUntraced(function* (name: string) {
        return leaseCommandOf(license, yield* one.ask(id, checkout, checkoutOf(license, name)))
      })
      const blocked = yield* take("barred")
      yield* other.ask(id, blacklist, { device_id: deviceIdOf(license, "barred") })
      assert.strictEqual(yield* codeOf(one.ask(id, heartbeat, blocked)), "DEVICE_BLACKLISTED")
      assert.strictEqual(yield* codeOf(one.ask(id, checkout, checkoutOf(license, "barred"))), "DEVICE_BLACKLISTED")
      yield* other.ask(id, unblacklist, { device_id: deviceIdOf(license, "barred") })
      yield* take("barred")

      const forgotten = yield* take("forgotten")
      yield* other.ask(id, reset, { device_id: deviceIdOf(license, "forgotten") })
      assert.strictEqual(yield* codeOf(one.ask(id, heartbeat, forgotten)), "LEASE_NOT_ACTIVE")

      const seat = yield* take("seat")
      yield* one.ask(id, activate, requestOf(license, "slot"))
      yield* other.ask(id, suspend, undefined)
      assert.strictEqual(yield* codeOf(one.ask(id, heartbeat, seat)), "LICENSE_SUSPENDED")
      yield* other.ask(id, reinstate, undefined)
      assert.strictEqual(yield* codeOf(one.ask(id, heartbeat, seat)), "LEASE_NOT_ACTIVE")
      yield* one.ask(id, validate, requestOf(license, "slot"))
      assert.deepStrictEqual(yield* leaseStates(id), {
        "blacklisted deactivated": 1,
        "ended deactivated": 2,
        "ended reset": 1
      })

      yield* take("seat")
      yield* other.ask(id, revoke, undefined)
      assert.strictEqual(yield* codeOf(one.ask(id, checkout, checkoutOf(license, "seat"))), "LICENSE_REVOKED")
      const sql = yield* SqlClient.SqlClient
      const [remaining] = yield* sql<{ live: number; active: number }>`
        SELECT (SELECT count(*) FROM leases WHERE license_id = ${id} AND status = 'live') AS live,
          (SELECT count(*) FROM devices WHERE license_id = ${id} AND status = 'active') AS active`
      assert.deepStrictEqual(remaining, { live: 0, active: 0 })
    })
  )

  it.effect("the end of access ends seats on both nodes, and a renewal does not restore them", () =>
    Effect.gen(function* () {
      const [one, other] = yield* nodes
      const now = yield* Clock.currentTimeMillis
      const license = yield* makeLicense({
        max_floating_users: 2,
        license_type: "subscription",
        expires_at: now + 10 * 60_000
      })
      const seat = leaseCommandOf(license, yield* one.ask(license.license, checkout, checkoutOf(license, "m")))
      yield* other.ask(license.license, check, requestOf(license, "m"))
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(yield* codeOf(other.ask(license.license, heartbeat, seat)), "LICENSE_EXPIRED")
      yield* one.ask(license.license, renew, { extend_by_days: 30 })
      assert.strictEqual(yield* codeOf(other.ask(license.license, heartbeat, seat)), "LEASE_NOT_ACTIVE")
      assert.deepStrictEqual(yield* leaseStates(license.license), { "ended deactivated": 1 })
      yield* other.ask(license.license, checkout, checkoutOf(license, "m"))
    })
  )

  it.effect("an old token is recognized by a node that never cached it, among very many devices", () =>
    Effect.gen(function* () {
      const [one, other] = yield* nodes
      const license = yield* makeLicense({ max_floating_users: 200 })
      yield* fillLeases(license, 200, yield* Clock.currentTimeMillis)
      const earlierToken = leaseCommandOf(license, { lease_token: `lease_${license.license}_1` })
      yield* one.ask(license.license, checkout, checkoutOf(license, "m"))
      assert.strictEqual((yield* eventCounts(license.license))["lease.expired"], 200)
      assert.isTrue((yield* other.ask(license.license, heartbeat, earlierToken)).renewed)
      yield* one.ask(license.license, blacklist, { device_id: `${license.license}_1` })
      const newcomer = yield* makeNode
      assert.strictEqual(yield* codeOf(newcomer.ask(license.license, heartbeat, earlierToken)), "DEVICE_BLACKLISTED")
      assert.strictEqual(yield* codeOf(newcomer.ask(license.license, checkin, earlierToken)), "DEVICE_BLACKLISTED")
    })
  )

  it.effect("a license with 5,000 live leases accepts another, releases one, and ends them all", () =>
    Effect.gen(function* () {
      const [one, other] = yield* nodes
      const license = yield* makeLicense({ max_floating_users: 5001 })
      const end = (yield* Clock.currentTimeMillis) + 60_000
      yield* fillLeases(license, 5000, end)
      yield* one.ask(license.license, checkout, checkoutOf(license, "m"))
      assert.strictEqual(
        yield* codeOf(other.ask(license.license, checkout, checkoutOf(license, "n"))),
        "FLOATING_LIMIT_REACHED"
      )
      const storedLease = leaseCommandOf(license, { lease_token: `lease_${license.license}_7` })
      yield* other.ask(license.license, checkin, storedLease)
      yield* one.ask(license.license, checkout, checkoutOf(license, "n"))
      // On the node that has just evicted the devices that it need not cache.
      yield* one.ask(license.license, suspend, undefined)
      assert.deepStrictEqual(yield* leaseStates(license.license), {
        "checked_in deactivated": 1,
        "ended deactivated": 5001
      })
      assert.deepStrictEqual(yield* eventCounts(license.license), {
        "lease.checked_in": 1,
        "lease.checked_out": 2,
        "license.suspended": 1
      })
    })
  )

  it.effect(
    "releases the seats of devices that are not cached, at the end of their lease and when the expiry moves to the past",
    () =>
      Effect.gen(function* () {
        const [one, other] = yield* nodes
        const license = yield* makeLicense({ max_floating_users: 500 })
        const now = yield* Clock.currentTimeMillis
        yield* fillLeases(license, 100, now + 60_000)
        yield* one.ask(license.license, checkout, checkoutOf(license, "m"))
        yield* TestClock.adjust("1 minute")
        yield* one.ask(license.license, checkout, checkoutOf(license, "n"))
        assert.deepStrictEqual(yield* leaseStates(license.license), { "expired expired": 100, "live active": 2 })
        const later = yield* makeLicense({ max_floating_users: 500, license_type: "time_limited" })
        yield* fillLeases(later, 100, now + 3_600_000)
        yield* Effect.all(
          [
            other.ask(later.license, update, { expires_at: now }),
            other.ask(later.license, update, { customer_name: "Ada" })
          ],
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(yield* leaseStates(later.license), { "ended deactivated": 100 })
      })
  )
})
