/**
 * Random licenses. Every condition of a rule fails in some of them, alone and together with
 * others. Instants are as often on the boundaries that rules compare with as next to them.
 */
import * as fc from "fast-check"
import type { Binding } from "../../../src/licensing/model/Binding.ts"
import type {
  Assignment,
  DeviceRecord,
  LeaseRecord,
  LicenseRecord,
  LinkRecord,
  PolicyRecord,
  TargetPolicy
} from "../../../src/licensing/model/LicenseRecords.ts"
import type { LedgerEntry } from "../../../src/licensing/model/Usage.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import {
  assignmentOf,
  container,
  day,
  deviceOf,
  featureOf,
  hardware,
  leaseOf,
  minute,
  noon,
  type Rows,
  rowsOf,
  second
} from "./Licenses.ts"

/** Mostly the usual value, sometimes one of the rare ones. */
export const mostly = <A>(usual: A, ...rare: ReadonlyArray<A>): fc.Arbitrary<A> =>
  fc.oneof({ weight: 7, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...rare) })

/** Offsets in milliseconds from a boundary. */
const beside = fc.constantFrom(-1, 0, 1)

/** The machines and containers of the random requests. */
export const bindings: ReadonlyArray<Binding> = [
  hardware("fingerprint of machine A"),
  hardware("fingerprint of machine B"),
  hardware("fingerprint of machine C"),
  container("pod-a", { cluster_id: "cluster-x", namespace: "namespace-y" }),
  container("pod-b", { container_id: "container-z", hostname: "host of pod-b" })
]

export const featureCodes = ["api", "export", "reports"] as const

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
  allow_transfer: mostly(true, false),
  borrow_days_max: fc.constantFrom(undefined, 0, 30),
  self_deactivations_per_month: fc.constantFrom(0, 1, 3),
  hold_offline_slots: mostly(false, true),
  show_licensee: mostly(false, true),
  show_metadata: fc.constantFrom([], ["note"]),
  duration_days: fc.constantFrom(undefined, undefined, 1, 30),
  duration_starts: fc.constantFrom("creation", "first_activation"),
  max_floating_users: fc.constantFrom(undefined, 0, 1, 2, 3, 3),
  allow_offline_activation: mostly(true, false),
  entitlement_counter: fc.constantFrom(0, 2)
})

/** When a license ends: never, far away, or next to the end of expiry or of grace. */
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
  max_activations: mostly<number | undefined>(undefined, 0, 1, 4),
  max_container_instances: mostly<number | undefined>(undefined, 0, 1),
  max_floating_users: mostly<number | undefined>(undefined, 0, 1, 4),
  max_transfers: mostly<number | undefined>(undefined, 0, 1),
  offline_grace_days: mostly<number | undefined>(undefined, 0, 30),
  term_days: mostly<number | undefined>(undefined, 1, 30),
  entitlement_counter: fc.integer({ min: 1, max: 9 })
})

/** A device; numbers say by how many milliseconds its heartbeat is overdue. */
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
    // A device with only a seat was never activated, or its activation has lapsed.
    activated_at:
      spec.activated === "lately" && !spec.holds_slot ? undefined : heardAt(spec.activated, intervalMinutes),
    last_validated_at: spec.validated === undefined ? undefined : heardAt(spec.validated, intervalMinutes),
    due_at:
      Math.max(heardAt(spec.activated, intervalMinutes), heardAt(spec.validated ?? "long ago", intervalMinutes)) +
      intervalMinutes * minute +
      30 * second
  })

const assignmentSpecs: fc.Arbitrary<Partial<Assignment>> = fc.record({
  enabled: mostly(true, false),
  max_consumptions: fc.constantFrom(undefined, 0, 5, 10, 100),
  total_consumptions: mostly(3, 0, 4, 5, 12, Number.MAX_SAFE_INTEGER - 1),
  expires_at: mostly<number | undefined>(undefined, noon - 1, noon, noon + 1),
  from_policy: fc.boolean()
})

/** Earlier usage, under event ids that random requests repeat. */
const ledgers = fc.subarray<LedgerEntry>([
  { feature_id: "feat_api", action: "consume", event_id: "event-1", amount: 1, balance_after: 1 },
  { feature_id: "feat_export", action: "consume", event_id: "event-2", amount: 2, balance_after: 2 }
])

/** Versions released on the cutoff dates of the licenses above, and next to them. */
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

/** The random leases of a device: one that may be live, and a former one. */
const leaseSpecs = fc.record({
  end: fc.oneof(
    { weight: 4, arbitrary: fc.constant(20 * minute) },
    { weight: 2, arbitrary: fc.constantFrom(-1, 0, 1) }
  ),
  besideSlot: fc.boolean(),
  borrowed: mostly(false, true, true),
  former: fc.option(
    fc.constantFrom<LeaseRecord["status"]>("checked_in", "superseded", "expired", "ended", "blacklisted")
  )
})

type LeaseSpec = typeof leaseSpecs extends fc.Arbitrary<infer A> ? A : never

export const formerToken = (device: DeviceRecord) => sha256Hex(`former lease of ${device.id}`)

/**
 * An active device without a slot holds a seat; a device with a slot may hold one as well. A device that was reset or
 * blacklisted may have a borrowed one.
 */
const leasesFrom = (device: DeviceRecord, spec: LeaseSpec): ReadonlyArray<LeaseRecord> => {
  const isLive = device.status === "active" ? !device.holds_slot || spec.besideSlot : spec.borrowed
  const isKept = isLive && ["active", "reset", "blacklisted"].includes(device.status)
  const expires_at = noon + spec.end
  const ended = noon - 30 * minute
  return [
    ...(isKept ? [leaseOf(device, { expires_at, ...(spec.borrowed && { borrowed_until: expires_at }) })] : []),
    ...(spec.former === null
      ? []
      : [
          leaseOf(device, {
            id: `lse_former_${device.id}`,
            token_hash: formerToken(device),
            status: spec.former,
            expires_at: ended,
            ended_at: ended
          })
        ])
  ]
}

/** The records that a license can link to. */
const linkable: ReadonlyArray<LinkRecord> = [
  { kind: "customer", id: "cust_a" },
  { kind: "customer", id: "cust_b" },
  { kind: "order", id: "ord_1", product_id: "prod_1", subscription_id: "sub_1" },
  { kind: "order", id: "ord_foreign", product_id: "prod_2" },
  { kind: "subscription", id: "sub_1", product_id: "prod_1" },
  { kind: "subscription", id: "sub_2", product_id: "prod_1" }
]

/** The features of a policy that a license may move to, by code. */
const policyFeatures = fc.dictionary(
  fc.constantFrom(...featureCodes),
  fc.record(
    {
      enabled: fc.boolean(),
      max_consumptions: fc.constantFrom(0, 5, 10),
      expires_after_days: fc.constantFrom(1, 30),
      expires_with_license: fc.constant(true),
      metadata: fc.constantFrom({}, { note: "from the policy" })
    },
    { requiredKeys: ["enabled", "metadata"] }
  ),
  { noNullPrototype: true }
)

const targetPolicies = fc
  .tuple(policies, mostly<number | undefined>(undefined, noon - 1, noon + day))
  .map(([policy, not_due_before]) => ({ ...policy, not_due_before }))

const targets = fc.tuple(...[1, 2, 3].map(() => fc.tuple(targetPolicies, policyFeatures)))

const targetsFrom = (
  current: Partial<PolicyRecord>,
  given: ReadonlyArray<readonly [Partial<PolicyRecord>, object]>
) => {
  const targetOf = (id: string, product_id: string, policy: Partial<PolicyRecord>, features: object): TargetPolicy => ({
    policy: { ...rowsOf({ policy }).policy, id },
    product_id,
    features: Object.entries(features).map(([code, feature]) => {
      const { id: feature_id, name: feature_name } = featureOf(code)
      return { feature_id, feature_code: code, feature_name, ...feature }
    })
  })
  const [own, second, third] = given
  return [
    targetOf("pol_1", "prod_1", current, own?.[1] ?? {}),
    targetOf("pol_2", "prod_1", ...second!),
    targetOf("pol_3", "prod_1", ...third!),
    targetOf("pol_foreign", "prod_2", current, {})
  ]
}

/** A license with all its records and consistent counters. */
export const rows: fc.Arbitrary<Rows> = fc
  .record({
    policy: policies,
    targets,
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
        term_days: expiry === "never" ? license.term_days : undefined,
        total_consumptions: Math.min(total, Number.MAX_SAFE_INTEGER)
      },
      assignments: assignments.toReversed(),
      devices: known,
      leases: known.flatMap((device, index) => leasesFrom(device, given.leases[index] as LeaseSpec)),
      ledger: given.ledger,
      features: [...featureCodes.map((code) => featureOf(code)), featureOf("foreign", { product_id: "prod_2" })],
      versions: given.versions,
      links: linkable,
      targets: targetsFrom(policy, given.targets)
    })
  })
