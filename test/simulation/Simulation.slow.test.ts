/** A fixed set of seeds, on every run of the tests; `npm run simulate` runs others. */
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { SqlClient } from "effect/sql"
import { Database } from "../support/Database.ts"
import { openArena } from "./Arena.ts"
import { simulate } from "./Simulation.ts"
import { expectedTally } from "./Tally.ts"

const seeds = Array.from({ length: 18 }, (_, index) => 1001 + index)
const steps = 24
/** After so many seeds every command must have been accepted and every fault made. */
const lastSeed = 1080
/** Within so many seeds a broken rule must be found. */
const seedsMax = 20

type Run = (seed: number) => Effect.Effect<Effect.Success<ReturnType<typeof simulate>>>

class Ring extends Context.Service<
  Ring,
  {
    readonly side: SqlClient.SqlClient
    readonly run: Run
    /** One of the fixed seeds, run once. */
    readonly result: Run
  }
>()("licensing/test/Ring") {
  static readonly layer = Layer.effect(
    Ring,
    Effect.gen(function* () {
      const { url } = yield* Database
      const arena = yield* Effect.orDie(openArena(url))
      const run: Run = (seed) => Effect.orDie(simulate(arena, { seed, steps }))
      const results = new Map<number, Effect.Success<ReturnType<Run>>>()
      const result: Run = (seed) => {
        const known = results.get(seed)
        if (known !== undefined) return Effect.succeed(known)
        return Effect.tap(run(seed), (made) => Effect.sync(() => results.set(seed, made)))
      }
      return Ring.of({ side: arena.side, run, result })
    })
  ).pipe(Layer.provide(Database.layerUrl))
}

describe("licenses under faults", () => {
  layer(Ring.layer, { excludeTestServices: true })((it) => {
    it.effect.each(seeds)("seed %i: whatever goes wrong, what was told holds", (seed) =>
      Effect.gen(function* () {
        const { result } = yield* Ring
        assert.isUndefined((yield* result(seed)).failure)
      })
    )

    it.effect("no command and no fault is left out for long", () =>
      Effect.gen(function* () {
        const { result } = yield* Ring
        const seen = expectedTally()
        for (let seed = seeds[0]!; seed <= lastSeed && seen.missing.length > 0; seed++) {
          const { failure, tally } = yield* result(seed)
          assert.isUndefined(failure)
          seen.add(tally)
        }
        assert.deepStrictEqual(seen.missing, [])
      })
    )

    it.effect("a seed is one run: the same again, to the last row", () =>
      Effect.gen(function* () {
        const { run } = yield* Ring
        const first = yield* run(7)
        const other = yield* run(8)
        const again = yield* run(7)
        assert.strictEqual(again.digest, first.digest)
        assert.strictEqual(again.story(), first.story())
        assert.notStrictEqual(other.digest, first.digest)
      })
    )
  })
})

const failing = Effect.fnUntraced(function* (run: Run) {
  for (let seed = 1; seed <= seedsMax; seed++) {
    const result = yield* run(seed)
    if (result.failure !== undefined) return result
  }
  return assert.fail(`nothing was found in ${seedsMax} seeds`)
})

/** Faults of the database itself, as a wrong statement of the service would make them. */
const sabotages = [
  {
    what: "a consumption that is left out of the license's total",
    trigger: "BEFORE UPDATE ON licenses",
    body: "NEW.total_consumptions := OLD.total_consumptions; RETURN NEW",
    found: /total_consumptions/
  },
  {
    what: "an event that is not written",
    trigger: "BEFORE INSERT ON event_log",
    body: "IF NEW.event_type = 'license.deactivated' THEN RETURN NULL; END IF; RETURN NEW",
    found: /a reader in the middle of it sees|events and/
  },
  {
    what: "a wrong balance",
    trigger: "BEFORE INSERT ON usage_ledger",
    body: "NEW.balance_after := NEW.balance_after + 1; RETURN NEW",
    found: /ledger|balance/
  },
  {
    what: "a consumption that is no event",
    trigger: "BEFORE INSERT ON usage_ledger",
    body: "NEW.event_sequence := NULL; RETURN NEW",
    found: /a reader in the middle of it sees|events and/
  },
  {
    what: "a consumption that is two events",
    trigger: "BEFORE INSERT ON usage_ledger",
    body: `INSERT INTO event_log SELECT NEW.event_sequence, 'usage.consumed', 'license', 'l', 'license', NEW.license_id, NULL, '{}',
      NEW.occurred_at WHERE NEW.event_sequence IS NOT NULL; RETURN NEW`,
    found: /a reader in the middle of it sees|events and/
  },
  {
    what: "an event of a consumption with the next one's number",
    trigger: "BEFORE INSERT ON usage_ledger",
    body: "NEW.event_sequence := NEW.event_sequence + 1; RETURN NEW",
    found: /event/
  },
  {
    what: "an event of a consumption of another feature",
    trigger: "BEFORE INSERT ON usage_ledger",
    body: "NEW.event_feature_code := reverse(NEW.event_feature_code); RETURN NEW",
    found: /the event of a consumption is/
  },
  {
    what: "a published version that falls",
    trigger: "BEFORE UPDATE ON licenses",
    body: "NEW.entitlement_counter := NEW.entitlement_counter / 2; RETURN NEW",
    found: /version|counter/
  }
]

describe.each(sabotages)("the checkers find $what", ({ body, found, trigger }) => {
  layer(Ring.layer, { excludeTestServices: true })((it) => {
    it.effect("and tell how to see it again", () =>
      Effect.gen(function* () {
        const { run, side } = yield* Ring
        yield* side.unsafe(`CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body}; END $$`)
        yield* side.unsafe(`CREATE TRIGGER sabotage ${trigger} FOR EACH ROW EXECUTE FUNCTION sabotage()`)
        const failed = yield* failing(run)
        assert.match(failed.failure!, found)
        assert.include(failed.failure!, `npm run simulate -- --seed ${failed.seed} --steps ${steps}`)
      })
    )
  })
})
