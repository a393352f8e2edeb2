/** A new license: its dates, links and features, by its policy and by the request. */
import { assert, describe, it } from "@effect/vitest"
import { formatTimestamp, latest } from "../../../src/contract/api/Timestamp.ts"
import { type NewLicenseBasis, type NewLicenseInput, newLicense } from "../../../src/licensing/changes/NewLicense.ts"
import type { LinkRecord, PolicyRecord, TargetPolicy } from "../../../src/licensing/model/LicenseRecords.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { coming, day, dueAfter, featureOf, noon, present, rowsOf } from "../../support/rules/Licenses.ts"

const key = { key_hash: sha256Hex("a key"), license_key_prefix: "LK-12345", license_key_last4: "WXYZ" }
const end = noon + 30 * day

interface Given {
  readonly policy?: Partial<PolicyRecord>
  readonly features?: TargetPolicy["features"]
  readonly links?: Partial<NewLicenseBasis["links"]>
  readonly product_id?: string
}

const basisOf = ({ features = [], links, policy, product_id = "prod_1" }: Given = {}): NewLicenseBasis => ({
  target: { policy: rowsOf({ policy }).policy, product_id, product_code: "editor", features } as TargetPolicy,
  links: { order: undefined, subscription: undefined, ...links },
  features: new Map(
    [featureOf("extra"), featureOf("plan"), featureOf("foreign", { product_id: "prod_2" })].map((feature) => [
      feature.id,
      feature
    ])
  ),
  id: "lic_new",
  key
})

type Input = { readonly [Field in keyof NewLicenseInput]?: NewLicenseInput[Field] | undefined }

const inputOf = (given: Input = {}): NewLicenseInput =>
  ({ product_id: "prod_1", policy_id: "pol_1", expires_at: end, ...given }) as NewLicenseInput

const created = (input: Input = {}, given: Given = {}) => {
  const made = newLicense(inputOf(input), basisOf(given), noon)
  if (!("license" in made)) return assert.fail(`${made.code} ${made.detail}`)
  return { ...made, metadata: made.event.metadata }
}

const refused = (input: Input, given: Given = {}) => {
  const made = newLicense(inputOf(input), basisOf(given), noon)
  return "license" in made ? "accepted" : [made.code, made.detail]
}

describe("a new license", () => {
  it("begins active and unused, with the digest of its key and none of the request's other fields", () => {
    const made = created({ license_key: "MY-OWN-KEY", send_key: true, customer_name: "Anna", metadata: { a: 1 } })
    assert.deepStrictEqual(present(made.license), {
      product_id: "prod_1",
      policy_id: "pol_1",
      expires_at: end,
      customer_name: "Anna",
      metadata: { a: 1 },
      status: "active",
      active_device_count: 0,
      times_activated: 0,
      times_transferred: 0,
      total_consumptions: 0,
      entitlement_counter: 1,
      revision: 1,
      id: "lic_new",
      ...key,
      heartbeat_from: dueAfter(noon),
      created_at: noon,
      updated_at: noon
    })
    assert.deepStrictEqual(created().license.metadata, {})
    assert.isTrue(created().accepted)
    assert.deepStrictEqual(made.event, {
      event_type: "license.created",
      resource_type: "license",
      resource_id: "lic_new",
      metadata: {
        product_id: "prod_1",
        policy_id: "pol_1",
        license_type: "time_limited",
        expires_at: formatTimestamp(end)
      }
    })
  })

  it("has no feature that ends after the year 9999", () => {
    const perpetual: Given = { policy: { license_type: "perpetual" } }
    const features = [coming("plan", { expires_after_days: 36_500 })]
    const input = { expires_at: undefined, starts_at: latest - day }
    const { assignments } = created(input, { ...perpetual, features })
    assert.strictEqual(assignments[0]?.expires_at, latest)
  })

  it("names in its event the term that has not begun", () => {
    const waiting = { duration_days: 365, duration_starts: "first_activation" } as const
    const made = created({ expires_at: undefined }, { policy: waiting })
    assert.deepInclude(made.metadata, { duration_days: 365 })
    assert.notProperty(made.metadata, "expires_at")
    const perpetual = created({ expires_at: undefined }, { policy: { ...waiting, license_type: "perpetual" } })
    assert.deepInclude(perpetual.metadata, { maintenance_days: 365 })
  })

  it("links to the order's subscription, unless the request names it", () => {
    const order: LinkRecord = { kind: "order", id: "ord_1", product_id: "prod_1", subscription_id: "sub_1" }
    const subscription: LinkRecord = { kind: "subscription", id: "sub_1", product_id: "prod_1" }
    const inferred = created({ order_id: "ord_1" }, { links: { order } })
    assert.strictEqual(inferred.license.subscription_id, "sub_1")
    assert.deepInclude(inferred.metadata, { order_id: "ord_1", subscription_id: "sub_1" })
    const named = created({ subscription_id: "sub_1" }, { links: { subscription } })
    assert.strictEqual(named.license.subscription_id, "sub_1")
    assert.isUndefined(created().license.subscription_id)
    const foreign = { ...order, product_id: "prod_2" }
    assert.deepStrictEqual(refused({ order_id: "ord_1" }, { links: { order: foreign } }), [
      "LINKAGE_MISMATCH",
      "order_id"
    ])
  })

  it("is refused with a policy of another product, dates that its type forbids, and an end in the past", () => {
    assert.deepStrictEqual(refused({}, { product_id: "prod_2" }), ["LINKAGE_MISMATCH", "policy_id"])
    assert.deepStrictEqual(refused({ maintenance_expires_at: end }), ["VALIDATION_ERROR", "maintenance_expires_at"])
    assert.deepStrictEqual(refused({ expires_at: noon }), ["EXPIRY_NOT_IN_FUTURE", "expires_at"])
  })
})

describe("the features of a new license", () => {
  const plan = coming("plan", { max_consumptions: 10, expires_after_days: 7 })

  it("come with its policy, and count from its term", () => {
    const { assignments, metadata } = created({ starts_at: noon + day }, { features: [plan] })
    assert.lengthOf(assignments, 1)
    assert.deepInclude(assignments[0], {
      feature_id: "feat_plan",
      from_policy: true,
      enabled: true,
      max_consumptions: 10,
      expires_at: noon + 8 * day,
      expiry_recorded: false
    })
    const [recorded] = metadata["features"] as unknown as ReadonlyArray<object>
    assert.deepInclude(recorded, { feature_id: "feat_plan", feature_code: "plan", from_policy: true })
    assert.deepInclude(recorded, { max_consumptions: 10, enabled: true })
  })

  it("are added and overridden by the request", () => {
    const { assignments } = created(
      { features: [{ feature_id: "feat_extra" }, { feature_id: "feat_plan", max_consumptions: 99 }] },
      { features: [plan] }
    )
    assert.deepStrictEqual(
      assignments.map(({ feature_code }) => feature_code),
      ["plan", "extra"]
    )
    assert.deepInclude(assignments[0], { from_policy: false, max_consumptions: 99, expires_at: noon + 7 * day })
    assert.deepInclude(assignments[1], {
      feature_id: "feat_extra",
      feature_name: "The feature extra",
      from_policy: false,
      enabled: true,
      total_consumptions: 0,
      created_at: noon
    })
    assert.isUndefined(assignments[1]?.max_consumptions)
  })

  it("have nothing of the policy's periods if the request ends them", () => {
    const periods = { reset_period: "month", reset_anchor: "license", rollover_max: 5, overage_max: 3 } as const
    const { assignments } = created(
      { features: [{ feature_id: "feat_plan", reset_period: null }] },
      { features: [{ ...plan, ...periods }] }
    )
    const { resets_at, reset_anchor, reset_period, rollover_max, ...left } = assignments[0]!
    assert.deepStrictEqual([resets_at, reset_anchor, reset_period, rollover_max], Array(4).fill(undefined))
    assert.deepInclude(left, { max_consumptions: 10, overage_max: 3 })
  })

  it("have the first period of their quota", () => {
    const { assignments } = created({
      features: [{ feature_id: "feat_extra", max_consumptions: 5, reset_period: "day" }]
    })
    assert.deepInclude(assignments[0], { period_start: noon, resets_at: noon + day })
    const order: LinkRecord = {
      ...{ kind: "order", id: "ord_1", product_id: "prod_1", subscription_id: "sub_1" },
      ...{ period_start: noon - day, period_end: noon + 3 * day }
    }
    const followed = created(
      {
        order_id: "ord_1",
        features: [{ feature_id: "feat_extra", max_consumptions: 5, reset_period: "subscription" }]
      },
      { links: { order } }
    )
    assert.deepInclude(followed.assignments[0], { resets_at: noon + 3 * day })
  })

  it("are recorded as expired if they begin so", () => {
    const { assignments } = created({ features: [{ feature_id: "feat_extra", expires_at: noon - 1 }] })
    assert.isTrue(assignments[0]?.expiry_recorded)
  })

  it("are refused by their place in the request", () => {
    const features = (...given: ReadonlyArray<object>) =>
      refused({ features: given as NonNullable<NewLicenseInput["features"]> })
    const extra = { feature_id: "feat_extra" }
    assert.deepStrictEqual(features(extra, { feature_id: "feat_none" }), ["NOT_FOUND", "features[1].feature_id"])
    assert.deepStrictEqual(features({ feature_id: "feat_foreign" }), ["LINKAGE_MISMATCH", "features[0].feature_id"])
    assert.deepStrictEqual(features(extra, extra), ["VALIDATION_ERROR", "features[1].feature_id"])
    assert.deepStrictEqual(features({ ...extra, reset_period: "subscription", max_consumptions: 1 }), [
      "VALIDATION_ERROR",
      "features[0].reset_period"
    ])
  })
})
