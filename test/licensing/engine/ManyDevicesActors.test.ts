/**
 * A license with very many devices is cached without them and their leases. This must not be visible: every command, in
 * every order, on every node, has the same response and the same stored effect as on a license that is cached
 * completely.
 */
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { blacklist, reset, unblacklist } from "../../../src/licensing/changes/DeviceActions.ts"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { transfer } from "../../../src/licensing/changes/Transfer.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import type { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import { activate, check, deactivate, validate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { checkin, checkout, heartbeat } from "../../../src/licensing/rules/Floating.ts"
import { reinstate, revoke, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { columns } from "../../../src/platform/postgres/driver/Parameters.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import {
  checkoutOf,
  eventCounts,
  fillLeases,
  type LicenseOptions,
  leaseCommandOf,
  leaseStates,
  makeLicense,
  requestOf,
  stored
} from "../../support/database/StoredLicenses.ts"

type License = Effect.Success<ReturnType<typeof makeLicense>>
type Node = LicenseActors["Service"]

/** A license and the tokens that its checkouts returned, by machine. */
interface Side {
  readonly license: License
  readonly tokens: Map<string, Array<string>>
}

const minute = 60_000
const hour = 60 * minute
const machines = ["a", "b", "c"] as const

/** Devices that no command changes: they only prevent the license from being cached completely. */
const addDevices = Effect.fnUntraced(function* ({ license }: License) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO devices (id, license_id, binding_kind, binding_key, is_vm, is_container, status, holds_slot, first_seen_at, last_seen_at,
      metadata, created_at, updated_at)
    SELECT ${license} || '-crowd-' || n, ${license}, 'hardware', 'crowd-' || n, false, false, 'blacklisted', false, at, at, '{}', at, at
    FROM generate_series(1, 65) AS n, (SELECT timestamptz '2026-01-01Z' AS at) AS made`
})

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      does: fc.constantFrom("checkout", "checkout", "heartbeat", "checkin", "former heartbeat"),
      machine: fc.constantFrom(...machines)
    })
  },
  {
    weight: 6,
    arbitrary: fc.record({
      does: fc.constantFrom("activate", "activate", "deactivate", "validate", "validate", "check", "consume"),
      machine: fc.constantFrom(...machines)
    })
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constantFrom("reset", "blacklist", "unblacklist"),
      machine: fc.constantFrom(...machines)
    })
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constantFrom("suspend", "reinstate", "reinstate", "transfer", "renew", "update", "revoke"),
      machine: fc.constant("a" as const)
    })
  },
  {
    weight: 4,
    arbitrary: fc.record({ does: fc.constant("wait" as const), minutes: fc.constantFrom(1, 11, 11, 31, 1440) })
  },
  { weight: 4, arbitrary: fc.constant({ does: "forget" as const }) }
)

type Step = typeof step extends fc.Arbitrary<infer A> ? A : never

const steps = fc.array(fc.record({ step, node: fc.nat(1) }), { minLength: 25, maxLength: 25 })

const policies: ReadonlyArray<LicenseOptions> = [
  { max_activations: 2, max_floating_users: 2 },
  { max_activations: 3, max_floating_users: 3, require_heartbeat: true, validation_interval_minutes: 10 },
  { max_activations: 2, max_floating_users: 2, license_type: "time_limited", expires_at: 2 * hour }
]

const perform = Effect.fnUntraced(function* (node: Node, { license, tokens }: Side, taken: Step, number: number) {
  if (taken.does === "wait" || taken.does === "forget") return undefined
  const { license: id, keyHash } = license
  const { machine } = taken
  const request = requestOf(license, machine)
  const given = tokens.get(machine) ?? []
  const lease = (token: string | undefined) => leaseCommandOf(license, { lease_token: token ?? "lease_none" })
  const sql = yield* SqlClient.SqlClient
  const [device] = yield* sql<{ readonly id: string }>`
    SELECT id FROM devices WHERE license_id = ${id} AND binding_key = ${machine}`
  const target = { device_id: device?.id ?? "dev_none" }
  const now = yield* Clock.currentTimeMillis
  switch (taken.does) {
    case "checkout": {
      const command = checkoutOf(license, machine)
      const answer = yield* node.ask(id, checkout, command)
      tokens.set(machine, [...given, command.leaseToken])
      return answer
    }
    case "heartbeat":
      return yield* node.ask(id, heartbeat, lease(given.at(-1)))
    case "former heartbeat":
      return yield* node.ask(id, heartbeat, lease(given.at(-2)))
    case "checkin":
      return yield* node.ask(id, checkin, lease(given.at(-1)))
    case "consume":
      return yield* node.ask(id, consume, { ...request, feature_code: "export", event_id: `e${number}`, amount: 1 })
    case "activate":
      return yield* node.ask(id, activate, request)
    case "deactivate":
      return yield* node.ask(id, deactivate, request)
    case "validate":
      return yield* node.ask(id, validate, request)
    case "check":
      return yield* node.ask(id, check, { keyHash, binding: request.binding })
    case "reset":
      return yield* node.ask(id, reset, target)
    case "blacklist":
      return yield* node.ask(id, blacklist, target)
    case "unblacklist":
      return yield* node.ask(id, unblacklist, target)
    case "suspend":
      return yield* node.ask(id, suspend, undefined)
    case "reinstate":
      return yield* node.ask(id, reinstate, undefined)
    case "revoke":
      return number > 20 ? yield* node.ask(id, revoke, undefined) : undefined
    case "transfer":
      return yield* node.ask(id, transfer, { reset_devices: true })
    case "renew":
      return yield* node.ask(id, renew, { expires_at: now + hour })
    case "update":
      return yield* node.ask(id, update, { expires_at: now })
  }
})

/** As after a change on a third node. */
const forget = Effect.fnUntraced(function* (sides: ReadonlyArray<Side>) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    UPDATE licenses SET revision = revision + 1 WHERE id = ANY(${columns.text(sides.map(({ license }) => license.license))})`
})

/**
 * The response without the values that differ between licenses, and without last-seen times, which another node may
 * have updated since.
 */
const comparableAnswer = (answer: unknown): unknown =>
  JSON.parse(
    JSON.stringify(answer ?? null, (member, value) =>
      /(^|_)(id|key|token|prefix|last4|hash)$|^product_code$|^revision$|^last_(seen|validated)_at$/.test(member)
        ? undefined
        : value
    )
  )

/** All stored rows of the license, and its events. */
const storedState = Effect.fnUntraced(function* ({ license }: Side) {
  const sql = yield* SqlClient.SqlClient
  const devices = yield* sql`
    SELECT binding_key, status, holds_slot FROM devices
    WHERE license_id = ${license.license} AND binding_key NOT LIKE 'crowd-%' ORDER BY binding_key`
  const { revision: _, ...row } = yield* stored(license.license)
  return { row, devices, leases: yield* leaseStates(license.license), events: yield* eventCounts(license.license) }
})

layer(Database.layer, { timeout: 120_000 })("a license with very many devices", (it) => {
  it.effect(
    "has the same responses and rows as one with few, for every command on two nodes",
    () =>
      Effect.gen(function* () {
        const nodes = [yield* makeNode, yield* makeNode] as const
        const seen = new Set<string>()
        for (const [run, sequence] of fc.sample(steps, { numRuns: 15, seed: 7 }).entries()) {
          const start = yield* Clock.currentTimeMillis
          const { expires_at, ...policy } = policies[run % policies.length]!
          const policyAtStart = { ...policy, ...(expires_at !== undefined && { expires_at: start + expires_at }) }
          const withFewDevices: Side = { license: yield* makeLicense(policyAtStart), tokens: new Map() }
          const withManyDevices: Side = { license: yield* makeLicense(policyAtStart), tokens: new Map() }
          yield* addDevices(withManyDevices.license)
          for (const [number, { step, node }] of sequence.entries()) {
            if (step.does === "wait") yield* TestClock.adjust(`${step.minutes} minutes`)
            if (step.does === "forget") yield* forget([withFewDevices, withManyDevices])
            const answers = yield* Effect.forEach([withFewDevices, withManyDevices], (side) =>
              Effect.result(perform(nodes[node]!, side, step, number))
            )
            const [small, large] = answers.map((answer) =>
              Result.isSuccess(answer)
                ? comparableAnswer(answer.success)
                : (answer.failure as { readonly code: string }).code
            )
            assert.deepStrictEqual(large, small, `run ${run}, step ${number}: ${step.does}`)
            seen.add(typeof small === "string" ? small : step.does)
          }
          assert.deepStrictEqual(yield* storedState(withManyDevices), yield* storedState(withFewDevices), `run ${run}`)
        }
        for (const outcome of ["FLOATING_LIMIT_REACHED", "LEASE_EXPIRED", "LEASE_NOT_ACTIVE", "HEARTBEAT_OVERDUE"])
          assert.include(Array.from(seen), outcome)
      }),
    120_000
  )

  it.effect("never exceeds its seats on two nodes that cache different leases of thousands", () =>
    Effect.gen(function* () {
      const nodes = [yield* makeNode, yield* makeNode] as const
      const license = yield* makeLicense({ max_floating_users: 2010 })
      yield* fillLeases(license, 2000, (yield* Clock.currentTimeMillis) + minute)
      const results = yield* Effect.forEach(
        Array.from({ length: 40 }),
        (_, index) => {
          const node = nodes[index % 2]!
          // Every fourth machine releases an earlier seat and checks out itself.
          const earlierToken = leaseCommandOf(license, { lease_token: `lease_${license.license}_${index + 1}` })
          const released =
            index % 4 === 0 ? Effect.asVoid(node.ask(license.license, checkin, earlierToken)) : Effect.void
          return Effect.result(
            Effect.andThen(released, node.ask(license.license, checkout, checkoutOf(license, `m${index}`)))
          )
        },
        { concurrency: "unbounded" }
      )
      const refused = results.filter(Result.isFailure)
      const states = yield* leaseStates(license.license)
      assert.strictEqual(states["checked_in deactivated"], 10)
      assert.isAtMost(states["live active"]!, 2010)
      assert.strictEqual(states["live active"], 1990 + 40 - refused.length)
      // Every seat was given, once the last was free.
      yield* Effect.forEach(Array.from({ length: 2010 - states["live active"]! }), (_, index) =>
        nodes[index % 2]!.ask(license.license, checkout, checkoutOf(license, `late${index}`))
      )
      const full = yield* Effect.flip(nodes[1].ask(license.license, checkout, checkoutOf(license, "last")))
      assert.strictEqual(full.code, "FLOATING_LIMIT_REACHED")
      yield* TestClock.adjust("1 minute")
      yield* nodes[0].ask(license.license, checkout, checkoutOf(license, "next"))
      assert.strictEqual((yield* leaseStates(license.license))["expired expired"], 1990)
    })
  )
})
