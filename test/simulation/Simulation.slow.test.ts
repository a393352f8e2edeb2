/**
 * A fixed set of seeds, the coverage of them all, and faults that the checkers must find. The seeds are as few as draw every
 * command and fault twice: a combination that none of them draws is only found by `npm run simulate`, which runs others.
 */
import { assert, describe, layer } from "@effect/vitest"
import { Console, Effect } from "effect"
import { expectedCoverage } from "./checks/Coverage.ts"
import { type Run, SimulationRuns, steps } from "./SimulationRuns.ts"

const first = 1001
/**
 * A new command changes what a seed draws: then the test of the coverage tries the other candidates, passes with them, and logs which
 * to add here, so that it is faster again.
 */
const seeds = [first, first + 1, 1013, 1014, 1018, 1040, 1046, 1061, 1071, 1076, 1094, 1142]
/** Within these every command must have been accepted and every fault injected. */
const candidates = [...seeds, ...Array.from({ length: 100 }, (_, index) => first + index)]
/** The seeds within which a broken rule must be found. */
const seedsMax = 20

describe("licenses under faults", () => {
  layer(SimulationRuns.layer, { excludeTestServices: true })((it) => {
    it.effect.each(seeds)("seed %i: every checker passes under faults", (seed) =>
      Effect.gen(function* () {
        const { result } = yield* SimulationRuns
        assert.isUndefined((yield* result(seed)).failure)
      })
    )

    it.effect(
      "every command is accepted and every fault is injected within a hundred seeds",
      () =>
        Effect.gen(function* () {
          const { result } = yield* SimulationRuns
          const seen = expectedCoverage()
          for (const seed of new Set(candidates)) {
            if (seen.missing.length === 0) break
            const { failure, coverage } = yield* result(seed)
            assert.isUndefined(failure)
            const missing = seen.missing.length
            seen.add(coverage)
            if (!seeds.includes(seed) && seen.missing.length < missing) yield* Console.log(`Add the seed ${seed}.`)
          }
          assert.deepStrictEqual(seen.missing, [])
        }),
      600_000
    )

    it.effect("a seed gives the same run again, to the last row", () =>
      Effect.gen(function* () {
        const { result, run } = yield* SimulationRuns
        const once = yield* result(first)
        const other = yield* result(first + 1)
        const again = yield* run(first)
        assert.strictEqual(again.digest, once.digest)
        assert.strictEqual(again.transcript(), once.transcript())
        assert.notStrictEqual(other.digest, once.digest)
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

/** Faults that triggers inject, as a wrong statement of the service would cause them. */
const sabotages = [
  {
    what: "a consumption missing from the license's total",
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
  layer(SimulationRuns.layer, { excludeTestServices: true })((it) => {
    it.effect("and name the command that repeats the run", () =>
      Effect.gen(function* () {
        const { run, observer } = yield* SimulationRuns
        yield* observer.unsafe(
          `CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body}; END $$`
        )
        yield* observer.unsafe(`CREATE TRIGGER sabotage ${trigger} FOR EACH ROW EXECUTE FUNCTION sabotage()`)
        const failed = yield* failing(run)
        assert.match(failed.failure!, found)
        assert.include(failed.failure!, `npm run simulate -- --seed ${failed.seed} --steps ${steps}`)
      })
    )
  })
})
