/** The actor and the Journal on a real database: limits, counters, the fence between nodes, and failed commits. */
import { assert, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { activate, check, validate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { reinstate, revoke, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense } from "../../support/database/StoredLicenses.ts"
import { hardware } from "../../support/rules/Licenses.ts"

const counts = Effect.fnUntraced(function* (licenseId: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    active: number
    times: number
    total: number
    slots: number
    assigned: number
    ledger: number
    rows: number
    events: number
  }>`
    SELECT l.active_device_count AS active, l.times_activated AS times, l.total_consumptions AS total,
      (SELECT count(*) FROM devices WHERE license_id = l.id AND status = 'active' AND holds_slot) AS slots,
      (SELECT coalesce(sum(total_consumptions), 0)::bigint FROM license_features WHERE license_id = l.id) AS assigned,
      (SELECT coalesce(sum(amount), 0)::bigint FROM usage_ledger WHERE license_id = l.id) AS ledger,
      (SELECT count(*) FROM usage_ledger WHERE license_id = l.id) AS rows,
      (SELECT count(*) FROM events WHERE resource_id = l.id AND event_type IN ('license.activated', 'usage.consumed')) AS events
    FROM licenses l WHERE l.id = ${licenseId}`
  return row!
})

/** Every number up to the last exists once: the sequence has no gap. */
const assertGapless = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ last: number; rows: number; ledger_last: number; ledger_rows: number }>`
    SELECT last, (SELECT count(*) FROM events) AS rows, ledger_last, (SELECT count(*) FROM usage_ledger) AS ledger_rows FROM event_sequence`
  assert.strictEqual(row!.last, row!.rows)
  assert.strictEqual(row!.ledger_last, row!.ledger_rows)
})

const activation = (license: { keyHash: string }, name: string) => ({
  keyHash: license.keyHash,
  binding: hardware(name),
  newDeviceId: `dev_${license.keyHash.slice(0, 8)}_${name}`
})

const consumption = (license: { keyHash: string }, name: string, event_id: string, amount = 1) => ({
  keyHash: license.keyHash,
  binding: hardware(name),
  feature_code: "export",
  event_id,
  amount
})

const each = <A, E, R>(n: number, f: (index: number) => Effect.Effect<A, E, R>) =>
  Effect.forEach(Array.from({ length: n }), (_, index) => Effect.result(f(index)), { concurrency: "unbounded" })

const succeeded = (results: ReadonlyArray<Result.Result<unknown, unknown>>) => results.filter(Result.isSuccess).length

layer(Database.layer, { timeout: 60_000 })("license actors", (it) => {
  it.effect("64 fibers on one license never exceed its activation limit, and every count is exact", () =>
    Effect.gen(function* () {
      const node = yield* makeNode
      const license = yield* makeLicense({ max_activations: 10 })
      const results = yield* each(64, (index) => node.ask(license.license, activate, activation(license, `m${index}`)))
      assert.strictEqual(succeeded(results), 10)
      const { active, times, slots, events } = yield* counts(license.license)
      assert.deepStrictEqual({ active, times, slots, events }, { active: 10, times: 10, slots: 10, events: 10 })
      yield* assertGapless
    })
  )

  it.effect("64 fibers on one quota never exceed it, and ledger, assignment, license and responses agree", () =>
    Effect.gen(function* () {
      const node = yield* makeNode
      const license = yield* makeLicense({ max_consumptions: 100 })
      yield* node.ask(license.license, activate, activation(license, "m"))
      const results = yield* each(64, (index) =>
        node.ask(license.license, consume, consumption(license, "m", `e${index}`, 3))
      )
      assert.strictEqual(succeeded(results), 33)
      const { total, assigned, ledger, rows } = yield* counts(license.license)
      assert.deepStrictEqual({ total, assigned, ledger, rows }, { total: 99, assigned: 99, ledger: 99, rows: 33 })
      yield* assertGapless
    })
  )

  it.effect("two nodes on one license never count twice or exceed a limit", () =>
    Effect.gen(function* () {
      const nodes = [yield* makeNode, yield* makeNode]
      const license = yield* makeLicense({ max_activations: 7, max_consumptions: 500 })
      const activated = yield* each(40, (index) =>
        nodes[index % 2]!.ask(license.license, activate, activation(license, `m${index}`))
      )
      assert.strictEqual(succeeded(activated), 7)
      const owner = activated.findIndex(Result.isSuccess)
      // Every event id is sent to both nodes: one of the two counts it, the other returns the current state.
      const consumed = yield* each(200, (index) =>
        nodes[index % 2]!.ask(license.license, consume, consumption(license, `m${owner}`, `e${index >> 1}`))
      )
      assert.strictEqual(succeeded(consumed), 200)
      const { active, slots, total, assigned, ledger, rows } = yield* counts(license.license)
      assert.deepStrictEqual(
        { active, slots, total, assigned, ledger, rows },
        { active: 7, slots: 7, total: 100, assigned: 100, ledger: 100, rows: 100 }
      )
      yield* assertGapless
    })
  )

  for (const size of [1, 6]) {
    it.effect(`two nodes that both use the same license or licenses concurrently refuse no client: ${size}`, () =>
      Effect.gen(function* () {
        const nodes = [yield* makeNode, yield* makeNode]
        const licenses = yield* Effect.replicateEffect(makeLicense(), size)
        for (const license of licenses) yield* nodes[0]!.ask(license.license, activate, activation(license, "m"))
        // Each of 16 clients sends its next request after each response; every fourth request changes nothing.
        const [clients, requests] = [16, 60]
        const client = (index: number) =>
          Effect.forEach(Array.from({ length: requests }), (_, request) => {
            const [node, license] = [nodes[index % 2]!, licenses[(index + request) % size]!]
            return request % 4 === 3
              ? node.ask(license.license, check, activation(license, "m"))
              : node.ask(license.license, consume, consumption(license, "m", `${index}.${request}`))
          })
        const results = yield* each(clients, client)
        assert.deepStrictEqual(results.filter(Result.isFailure), [])
        const all = (clients * requests * 3) / 4 / size
        for (const { license } of licenses) {
          const { total, assigned, ledger, rows } = yield* counts(license)
          assert.deepStrictEqual(
            { total, assigned, ledger, rows },
            { total: all, assigned: all, ledger: all, rows: all }
          )
        }
        yield* assertGapless
      })
    )
  }

  it.effect("a response without a write still reflects the change of another node or of a direct statement", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [one, other] = [yield* makeNode, yield* makeNode]
      const license = yield* makeLicense()
      const command = activation(license, "m")
      yield* one.ask(license.license, activate, command)
      yield* other.ask(license.license, validate, command)
      yield* other.ask(license.license, suspend, undefined)
      const refused = yield* Effect.flip(one.ask(license.license, validate, command))
      assert.strictEqual(refused.code, "LICENSE_SUSPENDED")
      yield* one.ask(license.license, reinstate, undefined)
      assert.strictEqual((yield* other.ask(license.license, validate, command)).status, "active")
      yield* sql`UPDATE licenses SET status = 'revoked', revision = revision + 1 WHERE id = ${license.license}`
      assert.strictEqual((yield* Effect.flip(other.ask(license.license, validate, command))).code, "LICENSE_REVOKED")
    })
  )

  it.effect("a policy edit applies at the next use", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const node = yield* makeNode
      const license = yield* makeLicense({ max_activations: 1 })
      yield* node.ask(license.license, activate, activation(license, "m1"))
      const refused = yield* Effect.flip(node.ask(license.license, activate, activation(license, "m2")))
      assert.strictEqual(refused.code, "ACTIVATION_LIMIT_REACHED")
      yield* sql`UPDATE policies SET max_activations = 2, revision = revision + 1 WHERE id = ${license.policy}`
      yield* node.ask(license.license, activate, activation(license, "m2"))
      yield* sql`UPDATE policies SET max_activations = 1, revision = revision + 1 WHERE id = ${license.policy}`
      const again = yield* Effect.flip(node.ask(license.license, activate, activation(license, "m3")))
      assert.strictEqual(again.code, "ACTIVATION_LIMIT_REACHED")
      assert.strictEqual((yield* counts(license.license)).active, 2)
    })
  )

  it.effect("a failed commit leaves no response and no row, and does not affect other licenses of its group", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const node = yield* makeNode
      const poisoned = yield* makeLicense()
      const healthy = yield* makeLicense()
      yield* sql.unsafe(`
        CREATE OR REPLACE FUNCTION refuse_poison() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF NEW.fingerprint = 'poison' THEN RAISE EXCEPTION 'poisoned'; END IF; RETURN NEW; END $$`)
      yield* sql.unsafe(`CREATE TRIGGER poison BEFORE INSERT ON devices FOR EACH ROW EXECUTE FUNCTION refuse_poison()`)
      const [failed, fine] = yield* Effect.all(
        [
          Effect.exit(node.ask(poisoned.license, activate, activation(poisoned, "poison"))),
          Effect.exit(node.ask(healthy.license, activate, activation(healthy, "fine")))
        ],
        { concurrency: "unbounded" }
      )
      yield* sql.unsafe(`DROP TRIGGER poison ON devices`)
      assert.strictEqual(failed._tag, "Failure")
      assert.strictEqual(fine._tag, "Success")
      const none = yield* counts(poisoned.license)
      assert.deepStrictEqual([none.active, none.times, none.slots, none.events], [0, 0, 0, 0])
      assert.strictEqual((yield* counts(healthy.license)).active, 1)
      // The actor discarded the state of the failed batch: the slot is still free.
      yield* node.ask(poisoned.license, activate, activation(poisoned, "m"))
      yield* assertGapless
    })
  )

  it.effect("an event id counted before is not counted again, with any other commands in its group", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makeNode, yield* makeNode]
      const licenses = yield* Effect.forEach([1, 2, 3, 4], () => makeLicense({ max_consumptions: 10 }))
      for (const license of licenses) yield* one.ask(license.license, activate, activation(license, "m"))
      const [first, second] = licenses as [(typeof licenses)[0], (typeof licenses)[0]]
      yield* other.ask(first.license, consume, consumption(first, "m", "repeated", 10))
      yield* other.ask(second.license, consume, consumption(second, "m", "conflicting", 2))
      const answers = yield* Effect.all(
        [
          // The quota is used up, yet a repeated event id gets the current state.
          one.ask(first.license, consume, consumption(first, "m", "repeated", 10)),
          Effect.flip(one.ask(second.license, consume, consumption(second, "m", "conflicting", 3))),
          ...licenses.slice(1).map((license) => one.ask(license.license, consume, consumption(license, "m", "new")))
        ],
        { concurrency: "unbounded" }
      )
      assert.deepInclude(answers[0], { status: "active" })
      assert.deepInclude(answers[1], { code: "EVENT_ID_CONFLICT" })
      const totals = yield* Effect.forEach(licenses, (license) => counts(license.license))
      assert.deepStrictEqual(
        totals.map(({ total, assigned, ledger }) => [total, assigned, ledger]),
        [
          [10, 10, 10],
          [3, 3, 3],
          [1, 1, 1],
          [1, 1, 1]
        ]
      )
      yield* assertGapless
    })
  )

  it.effect("revoking deactivates every device, including uncached ones", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makeNode, yield* makeNode]
      const license = yield* makeLicense({ max_activations: 0 })
      yield* each(150, (index) => one.ask(license.license, activate, activation(license, `m${index}`)))
      assert.strictEqual((yield* counts(license.license)).slots, 150)
      yield* other.ask(license.license, revoke, undefined)
      const { active, slots } = yield* counts(license.license)
      assert.deepStrictEqual([active, slots], [0, 0])
      const refused = yield* Effect.flip(one.ask(license.license, validate, activation(license, "m1")))
      assert.strictEqual(refused.code, "LICENSE_REVOKED")
    })
  )

  it.effect("a full mailbox refuses immediately instead of growing", () =>
    Effect.gen(function* () {
      const node = yield* makeNode
      const license = yield* makeLicense({ max_activations: 0 })
      const results = yield* each(1500, (index) =>
        node.ask(license.license, activate, activation(license, `m${index}`))
      )
      const refusals = results.filter(Result.isFailure).map((result) => (result.failure as { code: string }).code)
      assert.deepStrictEqual([...new Set(refusals)], ["NOT_READY"])
      assert.strictEqual((yield* counts(license.license)).slots, 1500 - refusals.length)
    })
  )

  it.effect("an event id stays used after its feature was deleted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const node = yield* makeNode
      const license = yield* makeLicense()
      yield* node.ask(license.license, activate, activation(license, "m"))
      yield* node.ask(license.license, consume, consumption(license, "m", "e"))
      yield* sql`UPDATE licenses SET revision = revision + 1 WHERE id = ${license.license}`
      yield* sql`DELETE FROM license_features WHERE license_id = ${license.license}`
      yield* sql`DELETE FROM features WHERE id = ${license.feature}`
      const again = node.ask(license.license, consume, consumption(license, "m", "e"))
      assert.strictEqual((yield* Effect.flip(again)).code, "EVENT_ID_CONFLICT")
    })
  )

  it.effect("an unknown license is not found", () =>
    Effect.gen(function* () {
      const node = yield* makeNode
      assert.strictEqual((yield* Effect.flip(node.ask("lic_none", suspend, undefined))).code, "NOT_FOUND")
    })
  )
})
