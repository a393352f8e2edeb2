/** What a node keeps of licenses in memory, and whether it notices that others change them: only then it hands commands over to their owners. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Clock, Effect, Exit, identity } from "effect"
import { SqlClient } from "effect/sql"
import { ActorTable } from "../../../src/licensing/engine/ActorTable.ts"
import type { PendingCommand } from "../../../src/licensing/engine/PendingCommand.ts"
import { activate, check, validate } from "../../../src/licensing/rules/Activation.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense, requestOf } from "../../support/database/StoredLicenses.ts"

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("A license in memory", (it) => {
  it.effect(
    "counts as overtaken after another node has changed it, and not after an edit of its policy or catalog",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const license = yield* makeLicense({ max_activations: 0 })
        const [node, other] = [yield* makeNode, yield* makeNode]
        const overtaken = () => node.changedElsewhereAt(license.license)
        const activated = (on: typeof node, name: string) => on.ask(license.license, activate, requestOf(license, name))

        assert.strictEqual(overtaken(), Number.NEGATIVE_INFINITY)
        yield* activated(node, "a")
        for (const name of ["b", "c"]) {
          yield* sql`UPDATE policies SET revision = revision + 1 WHERE id = ${license.policy}`
          yield* node.ask(license.license, validate, requestOf(license, "a"))
          yield* sql`UPDATE products SET catalog_revision = catalog_revision + 1 WHERE id = ${license.product}`
          yield* activated(node, name)
        }
        assert.strictEqual(overtaken(), Number.NEGATIVE_INFINITY)

        const before = yield* Clock.currentTimeMillis
        yield* activated(other, "d")
        yield* activated(node, "e")
        assert.isAtLeast(overtaken(), before)
        assert.strictEqual(other.changedElsewhereAt(license.license), Number.NEGATIVE_INFINITY)
      })
  )

  it.effect("gives the router its signed commands, and decides those that the router leaves", () =>
    Effect.gen(function* () {
      const license = yield* makeLicense()
      const node = yield* makeNode
      const offered: Array<string> = []
      node.setRouter((licenseId, { resume, rule }) => {
        offered.push(`${rule.name} ${licenseId}`)
        if (rule.name === "validate") resume(Exit.succeed("decided by its owner"))
        return rule.name === "validate"
      })
      const signed = (rule: typeof activate | typeof validate) =>
        node.askWith(
          license.license,
          rule,
          requestOf(license, "m"),
          identity,
          (reply) => Effect.succeed<unknown>(reply),
          {}
        )
      assert.deepInclude(yield* signed(activate), { status: "active" })
      assert.strictEqual(yield* signed(validate), "decided by its owner")
      assert.deepInclude(yield* node.ask(license.license, check, requestOf(license, "m")), { status: "active" })
      assert.deepStrictEqual(offered, [`activate ${license.license}`, `validate ${license.license}`])
    })
  )
})

describe("Licenses in memory", () => {
  const tableOf = (count: number) => {
    const table = new ActorTable()
    for (let usedAt = 0; usedAt < count; usedAt++) table.of(`lic_${usedAt}`).usedAt = usedAt
    return table
  }
  const isKept = (table: ActorTable, usedAt: number) => table.find(`lic_${usedAt}`) !== undefined

  it("are dropped after five minutes without use, unless they are working", () => {
    const table = tableOf(3)
    table.of("lic_1").running = true
    table.evictIdle(300_001)
    assert.deepStrictEqual(
      [0, 1, 2].map((usedAt) => isKept(table, usedAt)),
      [false, true, true]
    )
    table.evictIdle(600_000)
    assert.deepStrictEqual(
      [0, 1, 2].map((usedAt) => isKept(table, usedAt)),
      [false, true, false]
    )
  })

  it("are at most 20,000: the least recently used others are dropped", () => {
    const table = tableOf(20_003)
    table.evictIdle(20_003)
    const kept = Array.from({ length: 20_003 }, (_, usedAt) => usedAt).filter((usedAt) => isKept(table, usedAt))
    assert.deepStrictEqual([kept.length, kept[0]], [20_000, 3])
  })

  it("have their work interrupted once all of its commands are late, and not before", () => {
    const table = new ActorTable()
    const actor = table.of("lic_1")
    let interruptions = 0
    const commandUntil = (deadline: number) => ({ deadline, resume: () => {} }) as unknown as PendingCommand
    Object.assign(actor, { running: true, batch: [commandUntil(1), commandUntil(2)] })
    Object.assign(actor, { fiber: { interruptUnsafe: () => interruptions++ } })
    const isGivenUp = () => actor.batch.map(({ givenUp = false }) => givenUp)
    table.giveUpLate(1, 0)
    assert.deepStrictEqual([interruptions, ...isGivenUp()], [0, true, false])
    table.giveUpLate(2, 0)
    assert.deepStrictEqual([interruptions, ...isGivenUp()], [1, true, true])
  })
})
