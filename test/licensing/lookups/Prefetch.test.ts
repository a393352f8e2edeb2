/**
 * What a batch's commands find in its prefetched data, and whether this data confirms the state for which it was fetched:
 * only then a response may be sent without another query.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { PendingChanges } from "../../../src/licensing/engine/PendingChanges.ts"
import type { Lookups } from "../../../src/licensing/lookups/LicenseLookups.ts"
import { prefetch } from "../../../src/licensing/lookups/Prefetch.ts"
import type { Revisions } from "../../../src/licensing/model/LicenseRecords.ts"
import type { Needs } from "../../../src/licensing/rules/LicenseCommand.ts"
import { CommittedState } from "../../../src/licensing/state/CommittedState.ts"
import { assignmentOf, deviceOf, hardware, noon, rowsOf } from "../../support/rules/Licenses.ts"

const [deskBinding, desktop] = [hardware("desk"), hardware("desktop")]
const currentRevisions: Revisions = { license: 5, policy: 3, catalog: 2 }

const state = () => {
  const { license, policy, assignments } = rowsOf({
    assignments: [assignmentOf("api"), assignmentOf("export")],
    license: { revision: currentRevisions.license },
    policy: { revision: currentRevisions.policy }
  })
  return new CommittedState({
    license,
    policy,
    assignments,
    productCode: "editor",
    catalogRevision: currentRevisions.catalog,
    devices: [],
    devicesComplete: false,
    leases: [],
    lapsingFrom: Number.POSITIVE_INFINITY,
    silentFrom: Number.POSITIVE_INFINITY
  })
}

const commandsOf = (needs: ReadonlyArray<Needs>) =>
  needs.map((needed) => ({ rule: { name: "any", needs: () => needed, decide: undefined as never }, command: {} }))

/** The look-ups of a batch of commands with these needs, in order, and what they confirm. */
const confirmed = Effect.fnUntraced(function* (
  needs: ReadonlyArray<Needs>,
  {
    asOf = {},
    found = [deskBinding, desktop]
  }: { asOf?: Partial<Revisions> | "gone"; found?: ReadonlyArray<typeof deskBinding> } = {}
) {
  const read = typeof asOf === "object" ? { ...currentRevisions, ...asOf } : undefined
  const revisions = read ?? currentRevisions
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
        found.includes(binding as typeof deskBinding)
          ? {
              devices: [{ device: deviceOf(binding as typeof deskBinding), lease: undefined }],
              revisions
            }
          : undefined
      ),
    leaseByToken: () => noted("lease", { devices: [], revisions }),
    feature: () => noted("feature", undefined),
    resettableCount: () => noted("resettable", 0),
    catalog: () => noted("catalog", { revision: revisions.catalog, versions: new Map<string, number>() }),
    inOneSnapshot: (_, inside) => Effect.as(Effect.all(inside), read)
  }
  const { isCurrent } = yield* prefetch(lookups as Lookups, state(), commandsOf(needs), noon, false)
  return { isCurrent, done }
})

it.effect("look-ups that all read the state's revisions confirm it", () =>
  Effect.gen(function* () {
    const needs = [{ binding: deskBinding }, { binding: desktop }, { leaseToken: "t" }]
    assert.deepStrictEqual(yield* confirmed(needs), { isCurrent: true, done: ["device", "device", "lease"] })
  })
)

it.effect.each(["license", "policy", "catalog"] as const)(
  "a look-up that read another revision of the %s does not confirm it",
  (what) =>
    Effect.gen(function* () {
      const { isCurrent } = yield* confirmed([{ binding: deskBinding }], {
        asOf: { [what]: currentRevisions[what] + 1 }
      })
      assert.isFalse(isCurrent)
    })
)

it.effect.each([
  ["nothing is looked up", []],
  ["only versions are looked up", [{ appVersion: "1.0" }]]
] as const)("nothing is confirmed if %s", ([, needs]) =>
  Effect.gen(function* () {
    assert.isUndefined((yield* confirmed(needs)).isCurrent)
  })
)

const inSnapshot = [{ featureId: "feat_1" }, { resettable: true }]

it.effect("look-ups that read no revisions read them in their snapshot", () =>
  Effect.gen(function* () {
    const done = ["feature", "resettable"]
    assert.deepStrictEqual(yield* confirmed(inSnapshot), { isCurrent: true, done })
    assert.isFalse((yield* confirmed(inSnapshot, { asOf: { license: 6 } })).isCurrent)
    assert.isFalse((yield* confirmed(inSnapshot, { asOf: "gone" })).isCurrent)
  })
)

it.effect(
  "versions of another revision of the catalog confirm nothing, even if the license was current after that",
  () =>
    Effect.gen(function* () {
      assert.isFalse((yield* confirmed([{ appVersion: "1.0" }], { asOf: { catalog: 1 } })).isCurrent)
      const mixed = yield* confirmed([{ appVersion: "1.0" }, { featureId: "feat_1" }], { asOf: { catalog: 1 } })
      assert.isFalse(mixed.isCurrent)
    })
)

it.effect("a missing device confirms nothing", () =>
  Effect.gen(function* () {
    assert.isUndefined(
      (yield* confirmed([{ binding: deskBinding }, { binding: desktop }], { found: [deskBinding] })).isCurrent
    )
  })
)

it.effect("versions are read before the data that confirms them", () =>
  Effect.gen(function* () {
    const { done, isCurrent } = yield* confirmed([{ binding: deskBinding, appVersion: "1.0" }])
    assert.deepStrictEqual({ done, isCurrent }, { done: ["catalog", "device"], isCurrent: true })
  })
)

const consumption = { action: "consume", amount: 4, event_id: "event-1" } as const

/** The view of a batch that takes a consumption of one feature back, naming these features. */
const takingBack = Effect.fnUntraced(function* (consumed: string, featureCodes: ReadonlyArray<string>) {
  const lookups: Partial<Lookups> = {
    reversalMark: ({ featureCode }) =>
      Effect.succeed(featureCode === consumed ? { featureId: `feat_${consumed}`, mark: consumption } : undefined),
    inOneSnapshot: (_, inside) => Effect.as(Effect.all(inside), currentRevisions)
  }
  const base = state()
  const needs = featureCodes.map((featureCode) => ({ reverses: { eventId: "event-1", featureCode } }))
  return new PendingChanges(base, yield* prefetch(lookups as Lookups, base, commandsOf(needs), noon, false))
})

it.effect.each([
  ["export", "api"],
  ["api", "export"]
])("a consumption that a batch takes back of %s and of %s is found for its own feature only", (featureCodes) =>
  Effect.gen(function* () {
    const view = yield* takingBack("export", featureCodes)
    assert.deepStrictEqual(view.reversalMark("feat_export", "event-1"), consumption)
    assert.isUndefined(view.reversalMark("feat_api", "event-1"))
  })
)

it.effect("a consumption of a feature that only an earlier command of the batch assigns again is found", () =>
  Effect.gen(function* () {
    const view = yield* takingBack("render", ["render"])
    assert.deepStrictEqual(view.reversalMark("feat_render", "event-1"), consumption)
  })
)
