/**
 * Random licenses, requests and sequences of commands. Every condition that a rule asks for fails in some of them, alone and
 * together with others, and instants lie on the boundaries that rules compare with as often as beside them.
 */
import * as fc from "fast-check"
import type { Code } from "../../src/api/ErrorCode.ts"
import type { Binding } from "../../src/licenses/model/Binding.ts"
import type {
  Assignment,
  DeviceRecord,
  LedgerEntry,
  LicenseRecord,
  PolicyRecord
} from "../../src/licenses/model/LicenseRecords.ts"
import { type ActivateCommand, activate, check, deactivate, validate } from "../../src/licenses/rules/Activation.ts"
import type { RuntimeCommand } from "../../src/licenses/rules/Admission.ts"
import { assign, unassign } from "../../src/licenses/rules/Assignments.ts"
import { type ConsumeCommand, consume } from "../../src/licenses/rules/Consumption.ts"
import { blacklist, reset, unblacklist } from "../../src/licenses/rules/DeviceActions.ts"
import { checkin, checkout, heartbeat, type LeaseCommand } from "../../src/licenses/rules/Floating.ts"
import { rotateKey } from "../../src/licenses/rules/KeyRotation.ts"
import type { Rule } from "../../src/licenses/rules/LicenseCommand.ts"
import { reinstate, revoke, suspend } from "../../src/licenses/rules/Lifecycle.ts"
import { issueOffline } from "../../src/licenses/rules/Offline.ts"
import { renew } from "../../src/licenses/rules/Renewal.ts"
import { transfer } from "../../src/licenses/rules/Transfer.ts"
import { update } from "../../src/licenses/rules/Update.ts"
import { resetUsage } from "../../src/licenses/rules/UsageReset.ts"
import { checkouts, heldLease, holding, type LeaseSpec, leaseSpecs, leasesFrom } from "./FloatingArbitraries.ts"
import {
  activationOf,
  assignmentOf,
  container,
  day,
  deviceOf,
  featureOf,
  frozen,
  hardware,
  keyHash,
  minute,
  noon,
  type Rows,
  rowsOf,
  second
} from "./Licenses.ts"
import {
  deviceCommands,
  edits,
  linkable,
  renewals,
  rotations,
  transfers,
  usageResets
} from "./ManagementArbitraries.ts"

/** Mostly the usual value, now and then one of the rare ones. */
const mostly = <A>(usual: A, ...rare: ReadonlyArray<A>): fc.Arbitrary<A> =>
  fc.oneof({ weight: 7, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...rare) })

/** The instants next to a boundary. */
const beside = fc.constantFrom(-1, 0, 1)

/** The machines and container instances that the random requests come from. */
export const bindings: ReadonlyArray<Binding> = [
  hardware("fingerprint of machine A"),
  hardware("fingerprint of machine B"),
  hardware("fingerprint of machine C"),
  container("pod-a", { cluster_id: "cluster-x", namespace: "namespace-y" }),
  container("pod-b", { container_id: "container-z", hostname: "host of pod-b" })
]

const featureCodes = ["api", "export", "reports"] as const

const policies: fc.Arbitrary<Partial<PolicyRecord>> = fc.record({
  license_type: fc.constantFrom("perpetual", "time_limited", "subscription", "trial", "consumption"),
  max_activations: fc.constantFrom(0, 1, 2, 3, 3),
  max_container_instances: fc.constantFrom(undefined, undefined, 0, 1, 2),
  grace_period_days: fc.constantFrom(0, 3),
  validation_interval_minutes: fc.constantFrom(10, 1440),
  require_heartbeat: fc.boolean(),
  allow_vm: mostly(true, false),
  allow_container: mostly(true, false),
  max_transfers: fc.constantFrom(0, 1, 2),
  max_floating_users: fc.constantFrom(undefined, 0, 1, 2, 3, 3),
  allow_offline_activation: mostly(true, false),
  entitlement_counter: fc.constantFrom(0, 2)
})

/** When a license ends: never, far away, or beside an end of expiry or of grace. */
const expiries = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom("never" as const, "far" as const) },
  { weight: 2, arbitrary: fc.record({ end: fc.constantFrom("expiry" as const, "access" as const), offset: beside }) }
)

const expiresAt = (
  expiry: typeof expiries extends fc.Arbitrary<infer A> ? A : never,
  graceDays: number
): number | undefined => {
  if (expiry === "never") return undefined
  if (expiry === "far") return noon + 30 * day
  return noon + expiry.offset - (expiry.end === "access" ? graceDays * day : 0)
}

const licenses = fc.record({
  status: mostly<LicenseRecord["status"]>("active", "suspended", "revoked", "grace_period", "expired"),
  starts_at: mostly<number | undefined>(undefined, noon - 1, noon, noon + 1),
  maintenance_expires_at: fc.constantFrom(undefined, noon - day, noon - day - 1),
  entitlement_counter: fc.integer({ min: 1, max: 9 })
})

/** A device, its heartbeat told by how long it is past due. */
const devices = fc.record({
  status: mostly<DeviceRecord["status"]>("active", "deactivated", "blacklisted", "reset", "expired"),
  holds_slot: mostly(true, false),
  activated: mostly<string | number>("lately", "long ago", -1, 0, 1),
  validated: mostly<string | number | undefined>(undefined, "lately", -1, 0, 1)
})

type DeviceSpec = typeof devices extends fc.Arbitrary<infer A> ? A : never

const heardAt = (heard: string | number, intervalMinutes: number): number => {
  if (heard === "lately") return noon - minute
  return heard === "long ago" ? noon - 90 * day : noon - intervalMinutes * minute - 30 * second - Number(heard)
}

const deviceFrom = (binding: Binding, spec: DeviceSpec, intervalMinutes: number): DeviceRecord =>
  deviceOf(binding, {
    status: spec.status,
    holds_slot: spec.status === "active" && spec.holds_slot,
    // Who holds nothing but a seat was never activated, or lapsed before.
    activated_at:
      spec.activated === "lately" && !spec.holds_slot ? undefined : heardAt(spec.activated, intervalMinutes),
    last_validated_at: spec.validated === undefined ? undefined : heardAt(spec.validated, intervalMinutes)
  })

const assignmentSpecs: fc.Arbitrary<Partial<Assignment>> = fc.record({
  enabled: mostly(true, false),
  max_consumptions: fc.constantFrom(undefined, 0, 5, 10, 100),
  total_consumptions: mostly(3, 0, 4, 5, 12, Number.MAX_SAFE_INTEGER - 1),
  expires_at: mostly<number | undefined>(undefined, noon - 1, noon, noon + 1)
})

/** Usage that was counted before, under the event ids that random requests use again. */
const ledgers = fc.subarray<LedgerEntry>([
  { feature_id: "feat_api", action: "consume", event_id: "event-1", amount: 1, balance_after: 1 },
  { feature_id: "feat_export", action: "consume", event_id: "event-2", amount: 2, balance_after: 2 }
])

/** Versions released on the cutoffs of the licenses above, and beside them. */
const catalogs = fc.oneof(
  fc.constant<Rows["versions"]>({}),
  fc.constant<Rows["versions"]>({
    "1.0": noon - 60 * day,
    "2.0": noon - day,
    "3.0": noon - 3 * day + 1,
    "4.0": noon,
    "5.0": noon + 60 * day
  })
)

/** A license with everything that belongs to it, its counters in agreement. */
export const rows: fc.Arbitrary<Rows> = fc
  .record({
    policy: policies,
    license: licenses,
    expiry: expiries,
    devices: fc.tuple(...bindings.map(() => fc.option(devices))),
    leases: fc.tuple(...bindings.map(() => leaseSpecs)),
    assignments: fc.tuple(...featureCodes.map(() => fc.option(assignmentSpecs, { freq: 4 }))),
    ledger: ledgers,
    versions: catalogs
  })
  .map(({ policy, license, expiry, ...given }) => {
    const known = bindings.flatMap((binding, index) => {
      const spec = given.devices[index]
      return spec == null ? [] : [deviceFrom(binding, spec, policy.validation_interval_minutes ?? 0)]
    })
    const assignments = featureCodes.flatMap((code, index) => {
      const spec = given.assignments[index]
      return spec == null ? [] : [assignmentOf(code, spec)]
    })
    const total = assignments.reduce((sum, { total_consumptions }) => sum + total_consumptions, 0)
    return rowsOf({
      policy,
      license: {
        ...license,
        expires_at: expiresAt(expiry, policy.grace_period_days ?? 0),
        total_consumptions: Math.min(total, Number.MAX_SAFE_INTEGER)
      },
      assignments: assignments.toReversed(),
      devices: known,
      leases: known.flatMap((device, index) => leasesFrom(device, given.leases[index] as LeaseSpec)),
      ledger: given.ledger,
      features: [...featureCodes.map((code) => featureOf(code)), featureOf("foreign", { product_id: "prod_2" })],
      versions: given.versions,
      links: linkable
    })
  })

/** What every runtime request carries. */
export const requests: fc.Arbitrary<RuntimeCommand> = fc
  .record({
    keyHash: fc.oneof(
      { weight: 19, arbitrary: fc.constant(keyHash) },
      { weight: 1, arbitrary: fc.constant("0".repeat(64)) }
    ),
    binding: fc.constantFrom(...bindings),
    is_vm: mostly(false, true),
    app_version: mostly<string | undefined>(undefined, "1.0", "2.0", "3.0", "4.0", "5.0", "unheard-of")
  })
  .map(({ keyHash, binding, ...said }) => ({ keyHash, binding: { ...binding, ...said } }))

export const activations = requests.map(
  (request): ActivateCommand => ({ ...activationOf(request.binding), ...request })
)

export const consumptions: fc.Arbitrary<ConsumeCommand> = fc
  .tuple(
    requests,
    fc.record({
      feature_code: fc.constantFrom(...featureCodes, ...featureCodes, "unheard-of"),
      event_id: fc.oneof(fc.constantFrom("event-1", "event-2", "event-3"), fc.uuid()),
      amount: fc.oneof(
        { weight: 9, arbitrary: fc.integer({ min: 1, max: 8 }) },
        { weight: 1, arbitrary: fc.constant(Number.MAX_SAFE_INTEGER) }
      )
    })
  )
  .map(([request, usage]) => ({ ...request, ...usage }))

const assigning = fc.record(
  {
    feature_id: fc.constantFrom(...featureCodes.map((code) => `feat_${code}`), "feat_foreign", "feat_unheard-of"),
    enabled: fc.boolean(),
    max_consumptions: fc.constantFrom(null, 0, 5, 50),
    expires_at: fc.constantFrom(null, noon + day),
    metadata: fc.constantFrom({}, { note: "changed" })
  },
  { requiredKeys: ["feature_id"] }
)

/** One command and the time that passes before it. */
export interface Step {
  readonly wait: number
  readonly rule: Rule<unknown, unknown, Code>
  readonly command: unknown
}

const steps = <Command, Reply, C extends Code>(
  weight: number,
  { name, decide }: Rule<Command, Reply, C>,
  commands: fc.Arbitrary<Command>
) => ({
  weight,
  arbitrary: fc.tuple(fc.constantFrom(0, 0, 1, second, minute, 11 * minute, day, 3 * day, 30 * day), commands).map(
    ([wait, command]): Step => ({
      wait,
      command,
      rule: { name, decide: (view, _, now) => decide(view, frozen(command), now) }
    })
  )
})

const nothing = fc.constant(undefined)

const ofHeldLease = <Reply, C extends Code>({
  name,
  decide
}: Rule<LeaseCommand, Reply, C>): Rule<LeaseCommand & { readonly device: string }, Reply, C> => ({
  name,
  decide: (view, command, now) => decide(view, heldLease(view, command), now)
})

/** Any command that a license can be given. A new rule belongs into this list. */
export const anyStep: fc.Arbitrary<Step> = fc.oneof(
  steps(6, activate, activations),
  steps(3, validate, requests),
  steps(1, check, requests),
  steps(6, consume, consumptions),
  steps(3, deactivate, requests),
  steps(3, issueOffline, requests),
  steps(6, checkout, checkouts(requests)),
  steps(3, ofHeldLease(heartbeat), holding(bindings)),
  steps(3, ofHeldLease(checkin), holding(bindings)),
  steps(3, assign, assigning),
  steps(1, unassign, fc.record({ feature_id: fc.constantFrom("feat_api", "feat_export", "feat_unheard-of") })),
  steps(3, update, edits),
  steps(3, renew, renewals),
  steps(3, transfer, transfers),
  steps(3, resetUsage, usageResets),
  steps(1, rotateKey, rotations),
  steps(2, reset, deviceCommands(bindings)),
  steps(2, blacklist, deviceCommands(bindings)),
  steps(3, unblacklist, deviceCommands(bindings)),
  steps(1, suspend, nothing),
  steps(2, reinstate, nothing),
  { weight: 1, arbitrary: fc.oneof(steps(1, revoke, nothing), steps(9, reinstate, nothing)) }
)
