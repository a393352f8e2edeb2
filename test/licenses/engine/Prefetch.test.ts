/** Whether what was looked up confirms the state that it was looked up for: only then an answer may leave without another question. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { CommittedState } from "../../../src/licenses/engine/CommittedState.ts"
import type { Lookups } from "../../../src/licenses/engine/LicenseLookups.ts"
import { prefetch } from "../../../src/licenses/engine/Prefetch.ts"
import type { Revisions } from "../../../src/licenses/model/LicenseRecords.ts"
import type { Needs } from "../../../src/licenses/rules/LicenseCommand.ts"
import { deviceOf, hardware, noon, rowsOf } from "../../support/Licenses.ts"

const [desk, desktop] = [hardware("desk"), hardware("desktop")]
const held: Revisions = { license: 5, policy: 3, catalog: 2 }

const state = () => {
  const { license, policy, assignments } = rowsOf({
    license: { revision: held.license },
    policy: { revision: held.policy }
  })
  return new CommittedState({
    license,
    policy,
    assignments,
    productCode: "editor",
    catalogRevision: held.catalog,
    devices: [],
    devicesComplete: false,
    leases: [],
    lapsingFrom: Number.POSITIVE_INFINITY,
    silentFrom: Number.POSITIVE_INFINITY
  })
}

/** What look-ups did, in their order, and what they confirm of a round of commands with these needs. */
const confirmed = Effect.fnUntraced(function* (
  needs: ReadonlyArray<Needs>,
  { asOf = {}, found = [desk, desktop] }: { asOf?: Partial<Revisions>; found?: ReadonlyArray<typeof desk> } = {}
) {
  const done: Array<string> = []
  const noted = <A>(name: string, value: A) =>
    Effect.sync(() => {
      done.push(name)
      return value
    })
  const lookups: Partial<Lookups> = {
    device: ({ binding }) =>
      noted(
        "device",
        found.includes(binding as typeof desk)
          ? {
              devices: [{ device: deviceOf(binding as typeof desk), lease: undefined }],
              revisions: { ...held, ...asOf }
            }
          : undefined
      ),
    leaseByToken: () => noted("lease", { devices: [], revisions: { ...held, ...asOf } }),
    feature: () => noted("feature", undefined),
    resettableCount: () => noted("resettable", 0),
    versions: () => noted("versions", new Map())
  }
  const asked = needs.map((needed) => ({
    rule: { name: "any", needs: () => needed, decide: undefined as never },
    command: {}
  }))
  const { isCurrent } = yield* prefetch(lookups as Lookups, state(), asked, noon, false)
  return { isCurrent, done }
})

it.effect("look-ups that all saw the state's revisions confirm it", () =>
  Effect.gen(function* () {
    const needs = [{ binding: desk }, { binding: desktop }, { leaseToken: "t" }]
    assert.deepStrictEqual(yield* confirmed(needs), { isCurrent: true, done: ["device", "device", "lease"] })
  })
)

it.effect.each(["license", "policy", "catalog"] as const)(
  "a look-up that saw another revision of the %s denies it",
  (what) =>
    Effect.gen(function* () {
      const { isCurrent } = yield* confirmed([{ binding: desk }], { asOf: { [what]: held[what] + 1 } })
      assert.isFalse(isCurrent)
    })
)

it.effect.each([
  ["nothing is looked up", []],
  ["a look-up does not tell", [{ binding: desk }, { featureId: "feat_1" }]],
  ["the count of devices to reset comes after it", [{ binding: desk, resettable: true }]]
] as const)("nothing is confirmed where %s", ([, needs]) =>
  Effect.gen(function* () {
    assert.isUndefined((yield* confirmed(needs)).isCurrent)
  })
)

it.effect("a device that is not there confirms nothing", () =>
  Effect.gen(function* () {
    assert.isUndefined((yield* confirmed([{ binding: desk }, { binding: desktop }], { found: [desk] })).isCurrent)
  })
)

it.effect("versions are read ahead of what confirms them", () =>
  Effect.gen(function* () {
    const { done, isCurrent } = yield* confirmed([{ binding: desk, appVersion: "1.0" }])
    assert.deepStrictEqual({ done, isCurrent }, { done: ["versions", "device"], isCurrent: true })
  })
)
