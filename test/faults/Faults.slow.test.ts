/** A few rounds of `npm run faults`: the harness works, and the service keeps what it acknowledged. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Ref } from "effect"
import { runRounds } from "./Faults.ts"
import type { RoundResult } from "./Rounds.ts"

const minutes = 240_000

const withoutViolations = (nodes: number, names: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const results = yield* Ref.make<ReadonlyArray<RoundResult>>([])
    const options = { nodes, rounds: names.length, seed: 1, only: names }
    const found = yield* runRounds(options, (result) => Ref.update(results, (all) => [...all, result]))
    assert.deepStrictEqual(found, [])
    const told = yield* Ref.get(results)
    assert.deepStrictEqual(told.map(({ fault }) => fault).toSorted(), names.toSorted())
    for (const { acknowledged } of told) assert.isAtLeast(acknowledged, 100)
  }).pipe(Effect.scoped)

describe("The service as processes", () => {
  it.live(
    "keeps what it acknowledged when a node or the database is killed, and when the database's answers are lost",
    () => withoutViolations(1, ["kill a node", "kill all of PostgreSQL", "the link to the database loses responses"]),
    minutes
  )
})
