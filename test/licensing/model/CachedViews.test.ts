/** The cached list of a license's features after changes of its assignments: what a new list would be, in its value and in its text. */
import { assert, describe, it } from "@effect/vitest"
import { canonicalize } from "../../../src/contract/api/CanonicalJson.ts"
import type { Assignment, CachedViews } from "../../../src/licensing/model/LicenseRecords.ts"
import { cachedViewsAfter, entitlementOf } from "../../../src/licensing/rules/Entitlement.ts"
import { viewOf } from "../../support/rules/LicenseRules.ts"
import { assignmentOf, day, deviceOf, hardware, minute, noon, type Rows, rowsOf } from "../../support/rules/Licenses.ts"

const device = deviceOf(hardware("machine"))
const others = (count: number) => Array.from({ length: count }, (_, index) => assignmentOf(`other-${index + 10}`))
const withFeatures = (...assignments: ReadonlyArray<Assignment>) => rowsOf({ assignments, devices: [device] })

const withCache = (rows: Rows, cachedViews: CachedViews | undefined) => ({ ...viewOf(rows), cachedViews })
const featuresAt = (view: ReturnType<typeof withCache>, now = noon) =>
  entitlementOf(view, device, now, undefined).features

/** A license with a cached list of its features. */
const cached = (rows: Rows) => {
  const view = withCache(rows, {})
  featuresAt(view)
  assert.isDefined(view.cachedViews?.features)
  return view
}

/** The license after changes of assignments, with what is left of its cache. */
const changed = (rows: Rows, ...changes: ReadonlyArray<Assignment>) => {
  const codes = new Set(changes.map(({ feature_code }) => feature_code))
  const kept = rows.assignments.filter(({ feature_code }) => !codes.has(feature_code))
  return withCache({ ...rows, assignments: [...kept, ...changes] }, cachedViewsAfter(cached(rows), changes))
}

/** Of two lists that differ at most in their cache. */
const assertAlike = (view: ReturnType<typeof withCache>, now = noon) => {
  const anew = entitlementOf({ ...view, cachedViews: undefined }, device, now, undefined)
  const features = featuresAt(view, now)
  assert.deepStrictEqual(features, anew.features)
  assert.strictEqual(canonicalize(features), canonicalize(anew.features))
  assert.strictEqual(entitlementOf(view, device, now, undefined).next_check_at, anew.next_check_at)
}

const plain = assignmentOf("m-feature", { max_consumptions: 100, total_consumptions: 40 })
const periodic = { ...plain, reset_period: "month", resets_at: noon + 9 * day, overage_max: 50 } as const
const ending = { ...plain, expires_at: noon + 2 * minute }

const edits: ReadonlyArray<Partial<Assignment>> = [
  { total_consumptions: 41 },
  { max_consumptions: 50 },
  { max_consumptions: undefined },
  { rolled_over: 7 },
  { extra_credits: 3 },
  { overage: 2 },
  { overage_max: 9 },
  { overage_max: undefined },
  { reset_period: "day" },
  { reset_period: undefined },
  { resets_at: noon + 5 * day },
  { enabled: false },
  { expires_at: noon + minute },
  { expires_at: undefined },
  { expires_at: noon },
  { expires_with_license: true },
  { feature_id: "feat_new", total_consumptions: 0 }
]

describe("The cached list of features", () => {
  describe.each([
    ["plain", plain],
    ["periodic", periodic],
    ["ending", ending]
  ])("with a %s feature", (_, before) => {
    it.each(edits)("is as if made anew after the change %j", (edit) => {
      const rows = withFeatures(...others(20), before)
      for (const now of [noon, noon + minute, noon + 2 * minute, noon + 10 * day])
        assertAlike(changed(rows, { ...before, ...edit }), now)
    })
  })

  it("keeps its other entries if only counts change", () => {
    const rows = withFeatures(plain, ...others(20))
    const before = featuresAt(cached(rows))
    const view = changed(rows, { ...plain, total_consumptions: 41 })
    assert.isDefined(view.cachedViews?.features)
    const after = featuresAt(view)
    assert.deepInclude(after[0], { code: "m-feature", consumed: 41, remaining: 59 })
    assert.strictEqual(after.length, before.length)
    assertAlike(view)
  })

  it.each(["a-first", "m-middle", "z-last"])("replaces the entry %s wherever it stands", (code) => {
    const feature = assignmentOf(code, { max_consumptions: 9 })
    const rows = withFeatures(...others(16), feature, assignmentOf("m"), assignmentOf("n", { max_consumptions: 1 }))
    const view = changed(rows, { ...feature, total_consumptions: 4 })
    assert.strictEqual(view.cachedViews?.features?.features.find((entry) => entry.code === code)?.consumed, 4)
    assertAlike(view)
  })

  it("replaces several entries at once, and is dropped if one of them ends at another time", () => {
    const [one, two] = [assignmentOf("one"), assignmentOf("two", { max_consumptions: 5 })]
    const rows = withFeatures(...others(16), one, two)
    const both = changed(rows, { ...one, total_consumptions: 1 }, { ...two, total_consumptions: 2 })
    assert.isDefined(both.cachedViews?.features)
    assertAlike(both)
    const ended = changed(rows, { ...two, total_consumptions: 2 }, { ...one, expires_at: noon + minute })
    assert.deepStrictEqual(ended.cachedViews, {})
    assertAlike(ended, noon + minute)
  })

  it("stays the same if a change is not shown, as that of a disabled feature's count", () => {
    const off = assignmentOf("z-off", { enabled: false })
    const rows = withFeatures(...others(16), plain, off)
    const view = cached(rows)
    const renamed = { ...plain, metadata: { note: "changed" }, updated_at: noon, expiry_recorded: true }
    assert.strictEqual(cachedViewsAfter(view, [renamed]), view.cachedViews)
    assert.strictEqual(cachedViewsAfter(view, []), view.cachedViews)
    const counted = cachedViewsAfter(view, [{ ...off, total_consumptions: 3 }])
    assert.strictEqual(counted?.features?.features, view.cachedViews?.features?.features)
  })

  it("is dropped if a feature is added, also one that replaces another of its code", () => {
    const rows = withFeatures(...others(16), plain)
    assert.deepStrictEqual(cachedViewsAfter(cached(rows), [assignmentOf("new")]), {})
    assert.deepStrictEqual(cachedViewsAfter(cached(rows), [{ ...plain, feature_id: "feat_new" }]), {})
  })

  it("is made for 16 features and more only", () => {
    const consumed = { ...plain, total_consumptions: 41 }
    const viewsAfter = (count: number) =>
      cachedViewsAfter(withCache(withFeatures(plain, ...others(count - 1)), undefined), [consumed])
    assert.isUndefined(viewsAfter(15))
    assert.deepStrictEqual(viewsAfter(16), {})
    const views = (count: number): CachedViews => {
      const view = withCache(withFeatures(...others(count)), {})
      featuresAt(view)
      return view.cachedViews ?? {}
    }
    assert.deepStrictEqual(views(15), {})
    assert.isDefined(views(16).features)
  })

  it("is valid only while access ends when it did, because features may end with the license", () => {
    const following = { ...plain, expires_with_license: true }
    const view = cached(withFeatures(...others(16), following))
    const renewed = { ...view, license: { ...view.license, expires_at: noon + 90 * day } }
    assertAlike(renewed)
    const shown = featuresAt(renewed).find(({ code }) => code === plain.feature_code)
    assert.strictEqual(shown?.expires_at, new Date(noon + 90 * day).toISOString())
    const graced = { ...view, policy: { ...view.policy, grace_period_days: 3 } }
    assertAlike(graced)
  })
})
