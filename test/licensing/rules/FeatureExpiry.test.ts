import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { NewEvent } from "../../../src/ledger/events/Entry.ts"
import { type AssignCommand, assign, unassign } from "../../../src/licensing/changes/Assignments.ts"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { expiredFeatures } from "../../../src/licensing/model/FeatureExpiry.ts"
import type { Assignment } from "../../../src/licensing/model/LicenseRecords.ts"
import { validate } from "../../../src/licensing/rules/Activation.ts"
import { entitlementVersionAt, revoke, settle, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { allowed, applied, eventTypes, perform, settled, viewOf } from "../../support/rules/LicenseRules.ts"
import {
  assignmentOf,
  day,
  deviceOf,
  featureOf,
  hardware,
  noon,
  type Rows,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"

const machine = hardware("machine")
const end = noon + day
const features = [featureOf("api"), featureOf("export")]
const withFeatures = (...assignments: ReadonlyArray<Assignment>) =>
  rowsOf({ features, assignments, devices: [deviceOf(machine)] })
const start = withFeatures(assignmentOf("api", { expires_at: end }), assignmentOf("export"))

const versionAt = ({ assignments, license, policy }: Rows, now: number) =>
  entitlementVersionAt(license, policy, expiredFeatures(assignments, now).length, now)
const expiries = ({ events }: { readonly events?: ReadonlyArray<NewEvent> }) =>
  (events ?? []).filter(({ event_type }) => event_type === "license.feature_expired")
const codes = (changes: { readonly events?: ReadonlyArray<NewEvent> } | undefined) =>
  expiries(changes ?? {}).map(({ metadata }) => metadata["feature_code"])

describe("the expiry of a feature", () => {
  it("raises the version by one at its instant and is recorded once", () => {
    assert.isUndefined(settle(viewOf(start), end - 1))
    assert.strictEqual(versionAt(start, end) - versionAt(start, end - 1), 1)
    const changes = settle(viewOf(start), end)
    assert.deepStrictEqual(changes?.events, [
      {
        event_type: "license.feature_expired",
        resource_type: "license",
        resource_id: "lic_1",
        metadata: { feature_id: "feat_api", feature_code: "api", expires_at: "2030-01-16T12:00:00.000Z" }
      }
    ])
    const after = applied(start, changes ?? {})
    assert.deepStrictEqual(after.assignments, [
      assignmentOf("api", { expires_at: end, expiry_recorded: true }),
      assignmentOf("export")
    ])
    assert.strictEqual(versionAt(after, end), versionAt(start, end))
    assert.isUndefined(settle(viewOf(after), end + 20 * day))
  })

  it("is in the response that no longer lists the feature", () => {
    const answerAt = (now: number) => allowed(start, validate, requestOf(machine), now).reply
    const [before, after] = [answerAt(end - 1), answerAt(end)]
    assert.deepStrictEqual(
      [before, after].map((answer) => answer.features.map(({ code }) => code)),
      [["api", "export"], ["export"]]
    )
    assert.strictEqual(after.entitlement_version - before.entitlement_version, 1)
  })

  it("of several features at one instant, and together with the license's, counts each", () => {
    const both = withFeatures(assignmentOf("export", { expires_at: end }), assignmentOf("api", { expires_at: end }))
    const rows = { ...both, license: { ...both.license, expires_at: end } }
    const changes = settle(viewOf(rows), end)
    assert.deepStrictEqual(eventTypes(changes), [
      "license.expired",
      "license.feature_expired",
      "license.feature_expired"
    ])
    assert.deepStrictEqual(codes(changes), ["api", "export"])
    assert.strictEqual(versionAt(rows, end) - versionAt(rows, end - 1), 3)
    assert.strictEqual(versionAt(settled(rows, end), end), versionAt(rows, end))
  })

  it("is recorded while a license is suspended or expired, and never once it is revoked", () => {
    const suspended = allowed(start, suspend, undefined).after
    assert.deepStrictEqual(codes(settle(viewOf(suspended), end)), ["api"])
    const expired = { ...start, license: { ...start.license, expires_at: noon } }
    assert.deepStrictEqual(codes(settle(viewOf(settled(expired, noon)), end)), ["api"])
    const revoked = allowed(start, revoke, undefined).after
    const quiet = settled(revoked, end)
    assert.deepStrictEqual([quiet.events, quiet.license], [revoked.events, revoked.license])
    assert.isUndefined(settle(viewOf(quiet), end))
    assert.strictEqual(versionAt(revoked, end), versionAt(revoked, end - 1))
    // An expiry that came before the revocation is recorded before it.
    assert.deepStrictEqual(eventTypes(perform(start, revoke, undefined, end).after), [
      "license.feature_expired",
      "license.revoked"
    ])
  })

  it("of a disabled feature changes nothing, then and when the feature is enabled again", () => {
    const disabled = withFeatures(assignmentOf("api", { expires_at: end, enabled: false }))
    assert.isUndefined(settle(viewOf(disabled), end))
    assert.strictEqual(versionAt(disabled, end), versionAt(disabled, end - 1))
    const enabled = allowed(disabled, assign, { feature_id: "feat_api", enabled: true }, end).after
    assert.isUndefined(settle(viewOf(enabled), end))
    const inTime = allowed(disabled, assign, { feature_id: "feat_api", enabled: true }, end - 1).after
    assert.deepStrictEqual(codes(settle(viewOf(inTime), end)), ["api"])
  })

  it("is recorded anew for a later date, and not for another date in the past", () => {
    const after = settled(start, end)
    const moved = (expires_at: number | null, now = end) =>
      allowed(after, assign, { feature_id: "feat_api", expires_at }, now).after
    assert.deepStrictEqual(codes(settle(viewOf(moved(end + day)), end + day)), ["api"])
    assert.isUndefined(settle(viewOf(moved(noon)), end + day))
    assert.isUndefined(settle(viewOf(moved(null)), end + 20 * day))
    const removed = allowed(after, unassign, { feature_id: "feat_api" }, end).after
    assert.isUndefined(
      settle(viewOf(allowed(removed, assign, { feature_id: "feat_api", expires_at: noon }, end).after), end)
    )
  })

  it("follows an edit to a date in the past at once", () => {
    const { after } = allowed(start, assign, { feature_id: "feat_api", expires_at: noon - 1 })
    assert.deepStrictEqual(codes(settle(viewOf(after), noon)), ["api"])
    const removedToo = allowed(start, assign, { feature_id: "feat_api", expires_at: noon - 1, enabled: false }).after
    assert.isUndefined(settle(viewOf(removedToo), noon))
  })

  it("is not repeated after an edit at a node whose clock is behind", () => {
    const after = settled(start, end)
    const edited = allowed(after, assign, { feature_id: "feat_api", metadata: { plan: "gold" } }, end - 1).after
    assert.isUndefined(settle(viewOf(edited), end))
  })

  it("ends each time that a license has a feature, whatever is done in between: once, and only by time", () => {
    const edits: fc.Arbitrary<AssignCommand> = fc.record(
      {
        feature_id: fc.constantFrom("feat_api", "feat_export"),
        enabled: fc.boolean(),
        expires_at: fc.option(fc.integer({ min: -2, max: 6 }).map((days) => noon + days * day))
      },
      { requiredKeys: ["feature_id"] }
    )
    const steps = fc.array(fc.record({ days: fc.nat(3), edit: fc.option(edits) }), { minLength: 1, maxLength: 12 })
    const had = ({ assignments }: Rows, now: number) =>
      assignments.flatMap(({ enabled, expires_at = end + 900 * day, feature_code }) =>
        enabled && expires_at > now ? [feature_code] : []
      )
    fc.assert(
      fc.property(steps, (taken) => {
        let [rows, now] = [start, noon]
        for (const { days, edit } of taken) {
          const [listed, version] = [had(rows, now), versionAt(rows, now)]
          now += days * day
          const after = settled(rows, now)
          const ended = listed.filter((code) => !had(after, now).includes(code))
          const recorded = codes({ events: after.events.slice(rows.events.length) })
          // Together with expiries that an edit set to the past, which the edit itself took from the list.
          assert.includeMembers(recorded, ended)
          assert.strictEqual(new Set(recorded).size, recorded.length)
          assert.strictEqual(
            versionAt(after, now) - version,
            recorded.length - expiredFeatures(rows.assignments, now - days * day).length
          )
          rows = edit === null ? after : perform(after, assign, edit, now).after
          const byEdit = had(after, now).filter((code) => !had(rows, now).includes(code))
          const due = expiredFeatures(rows.assignments, now).map(({ feature_code }) => feature_code)
          // A feature that an edit disabled has not expired.
          assert.deepStrictEqual(due, edit?.enabled === false ? [] : byEdit)
        }
      }),
      { numRuns: 300 }
    )
  })

  it("stays recorded through a renewal", () => {
    const rows = { ...settled(start, end), policy: { ...start.policy, license_type: "subscription" as const } }
    const { after } = allowed(rows, renew, { extend_by_days: 30 }, end)
    assert.isUndefined(settle(viewOf(after), end))
  })
})
