/**
 * Rules must see the same through PendingChanges as through plain records, command after command, over commits and
 * discarded batches.
 */
import { assert, describe, it } from "@effect/vitest"
import { identity } from "effect"
import * as fc from "fast-check"
import { canonicalize, type Json } from "../../../src/contract/api/CanonicalJson.ts"
import { isUsage } from "../../../src/ledger/events/Entry.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { PendingChanges } from "../../../src/licensing/engine/PendingChanges.ts"
import { decide, isRefused, pendingCommand } from "../../../src/licensing/engine/PendingCommand.ts"
import type { Prefetched } from "../../../src/licensing/lookups/Prefetch.ts"
import type {
  Changes,
  DeviceRecord,
  LicenseView,
  LinkRecord,
  PolicyRecord
} from "../../../src/licensing/model/LicenseRecords.ts"
import type { Origin } from "../../../src/licensing/rules/LicenseCommand.ts"
import { settle } from "../../../src/licensing/rules/Lifecycle.ts"
import { CommittedState } from "../../../src/licensing/state/CommittedState.ts"
import { anyStep, type Step } from "../../support/rules/CommandArbitraries.ts"
import { rows as anyRows, bindings } from "../../support/rules/LicenseArbitraries.ts"
import { applied, eventTypes, perform, settled, viewOf } from "../../support/rules/LicenseRules.ts"
import {
  assignmentOf,
  day,
  deviceOf,
  minute,
  noon,
  productCode,
  type Rows,
  rowsOf
} from "../../support/rules/Licenses.ts"

const origin: Origin = { actor_type: "license", actor_id: "lic_1", request_id: "req_1", ip_address: undefined }

const stateOf = (rows: Rows): CommittedState =>
  new CommittedState({
    ...rows,
    productCode,
    catalogRevision: 1,
    devicesComplete: true,
    leases: rows.leases.filter(({ status }) => status === "live"),
    lapsingFrom: Number.POSITIVE_INFINITY,
    silentFrom: Number.POSITIVE_INFINITY
  })

/** The prefetched data of a batch: here, everything that exists. */
const prefetchedOf = ({ ledger, features, leases, versions, links, otherResettable, targets }: Rows): Prefetched => ({
  counted: new Map(
    ledger.flatMap(({ event_id, feature_id, amount }) => {
      const feature = features.find(({ id }) => id === feature_id)
      return event_id === undefined || feature === undefined ? [] : [[event_id, { feature_code: feature.code, amount }]]
    })
  ),
  features: new Map(features.map((feature) => [feature.id, feature])),
  versions: new Map(Object.entries(versions)),
  marks: new Map(),
  endedLeases: new Map(
    leases.filter(({ status }) => status !== "live").map((lease) => [lease.token_hash, lease] as const)
  ),
  policies: new Map(targets.map((target) => [target.policy.id, target])),
  links: Array.from(links),
  otherResettable
})

/** Around the ends of random leases, and long after all of them. */
const instants = [noon - 1, noon, noon + 1, noon + 20 * minute, noon + day, noon + 1000 * day]
const eventIds = ["event-1", "event-2", "event-3"]
const featureIds = ["feat_api", "feat_export", "feat_reports", "feat_foreign", "feat_unheard-of"]

/** A device without its last contact: no decision depends on it unless the policy requires heartbeats. */
const comparableDevice = (device: DeviceRecord | undefined, { require_heartbeat }: PolicyRecord) =>
  device && { ...device, last_seen_at: 0, ...(require_heartbeat ? undefined : unfenced) }

/** What raises no revision without heartbeats. */
const unfenced = { last_validated_at: 0, due_at: 0, offline_expires_at: 0 }

/** All results of a view, as values. */
const resultsOf = (view: LicenseView, { leases }: Rows) => ({
  license: { ...view.license, revision: 0 },
  policy: view.policy,
  limits: view.limits,
  assignments: view.assignments,
  byCode: ["api", "export", "reports", "unheard-of"].map((code) => view.assignmentByCode(code)),
  byId: featureIds.map((id) => view.assignmentById(id)),
  devices: bindings.map((binding) => comparableDevice(view.device(binding), view.policy)),
  devicesById: bindings.map((binding) =>
    comparableDevice(view.deviceById(view.device(binding)?.id ?? "dev_none"), view.policy)
  ),
  states: Array.from(view.devices, ({ id, status, holds_slot }) => `${id} ${status} ${holds_slot}`).toSorted(),
  liveLeases: Array.from(view.liveLeases, ({ id }) => id).toSorted(),
  leases: leases.map(({ token_hash }) => view.leaseByToken(token_hash)),
  liveLeaseCount: view.liveLeaseCount,
  liveLeasesOf: bindings.map((binding) => view.liveLeaseOf(deviceOf(binding).id)),
  lapsed: instants.map((at) => Array.from(view.lapsed(at), ({ id }) => id).toSorted()),
  activeContainers: view.activeContainers,
  overdue: instants.map((at) => Array.from(view.overdue(at), ({ id }) => id).toSorted()),
  counted: eventIds.map((id) => view.counted(id)),
  versions: ["1.0", "2.0", "unheard-of"].map((version) => view.version(version)),
  features: featureIds.map((id) => view.feature(id)),
  targets: ["pol_1", "pol_2", "pol_unheard-of"].map((id) => view.targetPolicy(id)),
  otherResettable: view.otherResettable
})

/** The parts of replies that may differ: a commit assigns revisions, and no decision depends on last-seen times. */
const volatile = new Set(["revision", "last_seen_at", "last_validated_at"])

const comparableReply = (reply: unknown): unknown =>
  JSON.parse(JSON.stringify(reply ?? null, (member, value) => (volatile.has(member) ? undefined : value)))

/** Whether a decision changes more than a last-seen time. */
const isChange = ({ seen: _, ...changes }: Changes) =>
  Object.values(changes).some((part) => !Array.isArray(part) || part.length > 0)

/**
 * Decides one batch on pending changes and on plain records in parallel; returns the plain records after the batch's
 * commit.
 */
const decideOnBoth = (start: Rows, draft: PendingChanges, steps: ReadonlyArray<Step>, now: number) => {
  let [rows, changed, onlySeen] = [settled(start, now), false, start]
  for (const { rule, command } of steps) {
    draft.settle(settle(draft, now), now)
    const outcome = rule.decide(draft, command, now)
    const { after, changes, refused, reply } = perform(rows, rule, command, now)
    assert.strictEqual(outcome.accepted ? undefined : outcome.code, refused?.code)
    draft.apply(outcome.accepted ? outcome.changes : (outcome.recorded ?? {}), origin, now)
    if (outcome.accepted) {
      const answer = outcome.reply(draft)
      assert.deepStrictEqual(comparableReply(answer), comparableReply(reply))
      // The cached text of a response must be the text of its value.
      const plain = JSON.parse(JSON.stringify(answer ?? null))
      assert.strictEqual(canonicalize((answer ?? null) as Json), canonicalize(plain))
    }
    rows = after
    changed ||= isChange(changes)
    onlySeen = applied(onlySeen, changes.seen === undefined ? {} : { seen: changes.seen })
    // Which devices are overdue under another policy is known only when the license is loaded again.
    const overdue = draft.movesPolicy ? { overdue: [] } : undefined
    assert.deepStrictEqual({ ...resultsOf(draft, rows), ...overdue }, { ...resultsOf(viewOf(rows), rows), ...overdue })
  }
  assert.strictEqual(draft.changed, changed)
  return changed ? rows : onlySeen
}

describe("pending changes", () => {
  const rounds = fc.array(
    fc.record({ steps: fc.array(anyStep, { minLength: 1, maxLength: 6 }), committed: fc.boolean() }),
    { minLength: 1, maxLength: 4 }
  )

  /**
   * Around the codes that commands name; so many that responses are assembled from the cached text of the previous one.
   */
  const many = ["aa", "bb", "ex", "f", "rf", "zz"].flatMap((code) =>
    ["1", "2", "3"].map((number) => assignmentOf(`${code}${number}`, number === "3" ? { expires_at: noon + day } : {}))
  )

  it.each([
    ["", []],
    [" with many features", many]
  ])("read like plain records, and do not change their state until it adopts them%s", (_, more) => {
    fc.assert(
      fc.property(anyRows, rounds, (given, sequence) => {
        const assignments = [...given.assignments, ...more].toSorted((a, b) =>
          a.feature_code < b.feature_code ? -1 : 1
        )
        let [rows, now]: [Rows, number] = [{ ...given, assignments }, noon]
        let state = stateOf(rows)
        for (const { committed, ...round } of sequence) {
          const last = round.steps.findIndex(({ command, rule }) => rule.endsBatch?.(command) === true)
          const steps = last === -1 ? round.steps : round.steps.slice(0, last + 1)
          now += steps[0]?.wait ?? 0
          const before = resultsOf(new PendingChanges(state, prefetchedOf(rows)), rows)
          const draft = new PendingChanges(state, prefetchedOf(rows))
          const after = decideOnBoth(rows, draft, steps, now)
          assert.deepStrictEqual(resultsOf(new PendingChanges(state, prefetchedOf(rows)), rows), before)
          if (!committed) continue
          const revision = state.license.revision
          draft.revision = revision + 7
          state.absorb(draft)
          assert.strictEqual(state.license.revision, draft.changed ? revision + 7 : revision)
          // A license that moved to another policy is loaded again.
          if (draft.movesPolicy) state = stateOf({ ...after, license: { ...after.license, revision: revision + 7 } })
          if (draft.changed)
            assert.deepStrictEqual(
              draft.entries.flatMap((entry) => (isUsage(entry) ? [] : entry.event_type)),
              eventTypes({ events: after.events.slice(rows.events.length) })
            )
          assert.strictEqual(draft.entries.filter(isUsage).length, after.ledger.length - rows.ledger.length)
          rows = after
          assert.deepStrictEqual(
            resultsOf(new PendingChanges(state, prefetchedOf(rows)), rows),
            resultsOf(viewOf(rows), rows)
          )
        }
      }),
      { numRuns: 200 }
    )
  })
})

it("a decision says that its refusal is temporary, as of a customer that is being erased", () => {
  const erasing: LinkRecord = { kind: "customer", id: "cus_1", product_id: "prod_1", erasing: true }
  const rows = rowsOf({ license: { customer_id: "cus_1", customer_name: "Anna" }, links: [erasing] })
  const refused = (command: Parameters<typeof update.decide>[1]) => {
    const pending = new PendingChanges(stateOf(rows), prefetchedOf(rows))
    const given = { rule: update, command, origin, begin: identity, resume: () => {}, span: undefined }
    const [decision] = decide(pending, [pendingCommand(given)], noon)
    return isRefused(decision!) ? decision.refusal : undefined
  }
  assert.deepInclude(refused({ customer_name: "Ben" }), { code: "CONFLICT", isTemporary: true })
  assert.notProperty(refused({ order_id: "ord_none" }), "isTemporary")
})
