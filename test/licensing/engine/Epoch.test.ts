/**
 * A node whose epoch another node retires: nothing that it decided before is committed, and it continues in a new
 * epoch.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, type Tracer } from "effect"
import { SqlClient } from "effect/sql"
import { makeEpoch } from "../../../src/licensing/engine/Epoch.ts"
import { type PendingCommand, pendingCommand } from "../../../src/licensing/engine/PendingCommand.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { concurrentChange, isConcurrentChange } from "../../../src/platform/postgres/queries/Sql.ts"
import { Traces } from "../../../src/platform/telemetry/Traces.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense, type StoredLicense } from "../../support/database/StoredLicenses.ts"
import { hardware } from "../../support/rules/Licenses.ts"

const activation = ({ keyHash }: StoredLicense) => ({
  keyHash,
  binding: hardware("m"),
  newDeviceId: `dev_${keyHash.slice(0, 8)}`
})
const consumption = ({ keyHash }: StoredLicense, event_id: string) => ({
  keyHash,
  binding: hardware("m"),
  feature_code: "export",
  event_id,
  amount: 1
})

const consumed = Effect.fnUntraced(function* (license: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ total: number; rows: number }>`
    SELECT total_consumptions AS total, (SELECT count(*) FROM usage_ledger WHERE license_id = l.id) AS rows
    FROM licenses l WHERE id = ${license}`
  assert.strictEqual(row!.total, row!.rows)
  return row!.total
})

layer(Database.layer, { timeout: 60_000 })("a retired epoch", (it) => {
  it.effect("is replaced by a new one, in which the node decides its own commands again, once each", () =>
    Effect.gen(function* () {
      const [node, other] = [yield* makeNode, yield* makeNode]
      const licenses = yield* Effect.replicateEffect(makeLicense(), 5)
      for (const license of licenses) yield* node.ask(license.license, activate, activation(license))
      for (let round = 0; round < 4; round++) {
        const { current } = node.journal.epoch
        const requests = licenses.flatMap((license) =>
          Array.from({ length: 5 }, (_, index) =>
            node.ask(license.license, consume, consumption(license, `${round}-${index}`))
          )
        )
        yield* Effect.all([other.journal.retire(current), ...requests], { concurrency: "unbounded" })
        // A group after the retirement notices it.
        yield* node.ask(licenses[0]!.license, consume, consumption(licenses[0]!, `${round}`))
        assert.notStrictEqual(node.journal.epoch.current, current)
      }
      assert.strictEqual(yield* consumed(licenses[0]!.license), 24)
      for (const { license } of licenses.slice(1)) assert.strictEqual(yield* consumed(license), 20)
    })
  )

  const givenUpAtItsEnd = (traces: Traces | undefined, span: Tracer.Span | undefined) =>
    Effect.gen(function* () {
      const [node, other] = [yield* Effect.provideService(makeNode, Traces, traces), yield* makeNode]
      const license = yield* makeLicense()
      yield* node.ask(license.license, activate, activation(license))
      yield* other.journal.retire(node.journal.epoch.current)
      const outcomes: Array<unknown> = []
      const command: PendingCommand = pendingCommand({
        rule: consume,
        command: consumption(license, "given up"),
        origin: { actor_type: "license", actor_id: license.license, request_id: "req_1", ip_address: undefined },
        begin: (reply) => reply,
        span,
        resume: (exit) => void outcomes.push(Exit.isSuccess(exit))
      })
      node.journal.epoch.onRenewed.add(() => {
        command.givenUp = true
      })
      node.postHere(license.license, command)
      yield* node.ask(license.license, consume, consumption(license, "own"))
      assert.deepStrictEqual(outcomes, [])
      assert.strictEqual(yield* consumed(license.license), 1)
    })

  it.effect("takes the commands with it that are given up when it ends", () => givenUpAtItsEnd(undefined, undefined))

  it.effect("takes those of sampled requests with it, too", () =>
    Effect.gen(function* () {
      const span = yield* Effect.makeSpan("a request")
      const traces = { startBelow: () => span, end: () => {} } as unknown as Traces
      yield* givenUpAtItsEnd(traces, span)
    })
  )

  it.effect("of a node that never wrote is retired as well, and twice is as good as once", () =>
    Effect.gen(function* () {
      const [node, other] = [yield* makeNode, yield* makeNode]
      const license = yield* makeLicense()
      const { current } = node.journal.epoch
      yield* Effect.all([other.journal.retire(current), other.journal.retire(current)], { concurrency: 2 })
      yield* other.journal.retire(current)
      yield* node.ask(license.license, activate, activation(license))
      assert.notStrictEqual(node.journal.epoch.current, current)
    })
  )

  it.effect("is the only reason for a new one: other concurrent changes are none", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const node = yield* makeNode
      const { license } = yield* makeLicense()
      const { current } = node.journal.epoch
      const canceled = sql`SELECT demand(false, ${concurrentChange}, 'the job was canceled')`
      const changes = Effect.succeed({ group: [], statements: [canceled] })
      assert.isTrue(isConcurrentChange(yield* Effect.flip(node.journal.many.locked([license], changes))))
      assert.strictEqual(node.journal.epoch.current, current)
    })
  )

  it.effect("is replaced once, however many of its groups are refused", () =>
    Effect.gen(function* () {
      const epoch = yield* makeEpoch
      const { current } = epoch
      const retired: Array<string> = []
      epoch.onRenewed.add((ended) => void retired.push(ended))
      epoch.renew(current)
      const next = epoch.current
      epoch.renew(current)
      assert.notStrictEqual(next, current)
      assert.strictEqual(epoch.current, next)
      assert.deepStrictEqual(retired, [current])
    })
  )
})
