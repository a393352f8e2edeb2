/**
 * Licenses as plain records, for tests of the rules. By default the builders make a license that allows
 * everything. All records are deeply frozen, so a rule that changes its input fails.
 */
import { canonicalize } from "../../../src/contract/api/CanonicalJson.ts"
import type { NewEvent } from "../../../src/ledger/events/Entry.ts"
import type { Binding } from "../../../src/licensing/model/Binding.ts"
import type {
  Assignment,
  DeviceRecord,
  FeatureRecord,
  LeaseRecord,
  LicenseRecord,
  LinkRecord,
  PolicyRecord,
  TargetPolicy
} from "../../../src/licensing/model/LicenseRecords.ts"
import type { LedgerEntry } from "../../../src/licensing/model/Usage.ts"
import type { ActivateCommand } from "../../../src/licensing/rules/Activation.ts"
import type { RuntimeCommand } from "../../../src/licensing/rules/Admission.ts"
import { redacted, sha256Hex } from "../../../src/platform/signing/Digest.ts"

export const second = 1000
export const minute = 60 * second
export const day = 24 * 60 * minute

/** The fixed instant at which tests begin. */
export const noon = Date.UTC(2030, 0, 15, 12)

/** All records that rules can read of one license. */
export interface Rows {
  readonly license: LicenseRecord
  readonly policy: PolicyRecord
  readonly assignments: ReadonlyArray<Assignment>
  readonly devices: ReadonlyArray<DeviceRecord>
  readonly leases: ReadonlyArray<LeaseRecord>
  readonly ledger: ReadonlyArray<LedgerEntry>
  readonly events: ReadonlyArray<NewEvent>
  /** The catalog: features, and the release instants of versions. */
  readonly features: ReadonlyArray<FeatureRecord>
  readonly versions: { readonly [version: string]: number }
  /** Customers, orders and subscriptions that a command may link to. */
  readonly links: ReadonlyArray<LinkRecord>
  /** Policies that the license may move to. */
  readonly targets: ReadonlyArray<TargetPolicy>
  /** How many resettable devices are not among these records. */
  readonly otherResettable: number
}

/** Rows with a partial license and policy. Counters default to values that agree with the other records. */
export interface RowsInput extends Partial<Omit<Rows, "license" | "policy">> {
  readonly license?: Partial<LicenseRecord> | undefined
  readonly policy?: Partial<PolicyRecord> | undefined
}

const deepFreeze = (value: unknown): void => {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return
  Object.freeze(value)
  for (const member of Object.values(value)) deepFreeze(member)
}

/** Freezes a value deeply and returns it. */
export const frozen = <A>(value: A): A => {
  deepFreeze(value)
  return value
}

/** A record without fields that are undefined, which mean the same as absent ones. */
export const present = <A extends object>(record: A): A =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as A

export const keyHash = sha256Hex("LK-the-key-of-these-tests")

const licenseDefaults: LicenseRecord = {
  id: "lic_1",
  product_id: "prod_1",
  policy_id: "pol_1",
  key_hash: keyHash,
  license_key_prefix: "LK-00000",
  license_key_last4: "ABCD",
  status: "active",
  expires_at: noon + 30 * day,
  active_device_count: 0,
  times_activated: 0,
  times_transferred: 0,
  total_consumptions: 0,
  entitlement_counter: 1,
  metadata: {},
  revision: 1,
  created_at: noon - 90 * day,
  updated_at: noon - 90 * day
}

const policyDefaults: PolicyRecord = {
  id: "pol_1",
  license_type: "time_limited",
  max_activations: 5,
  max_floating_users: 5,
  floating_timeout_minutes: 30,
  grace_period_days: 0,
  validation_interval_minutes: 1440,
  require_heartbeat: false,
  allow_offline_activation: true,
  offline_grace_days: 7,
  allow_vm: true,
  allow_container: true,
  max_transfers: 0,
  allow_transfer: true,
  self_deactivations_per_month: 3,
  hold_offline_slots: false,
  show_licensee: false,
  show_metadata: [],
  duration_starts: "creation",
  revision: 1,
  entitlement_counter: 0
}

const slots = (devices: ReadonlyArray<DeviceRecord>) => devices.filter((device) => device.holds_slot).length

export const rowsOf = ({ license, policy, ...rest }: RowsInput = {}): Rows => {
  const { assignments = [], devices = [] } = rest
  return frozen({
    leases: [],
    ledger: [],
    events: [],
    versions: {},
    links: [],
    targets: [],
    otherResettable: 0,
    features: assignments.map(({ feature_code }) => featureOf(feature_code)),
    ...rest,
    assignments,
    devices,
    license: {
      ...licenseDefaults,
      active_device_count: slots(devices),
      total_consumptions: assignments.reduce((sum, { total_consumptions }) => sum + total_consumptions, 0),
      ...license
    },
    policy: { ...policyDefaults, ...policy }
  })
}

/** The code of the product that every license is of. */
export const productCode = "editor"

export const featureOf = (code: string, given: Partial<FeatureRecord> = {}): FeatureRecord =>
  frozen({ id: `feat_${code}`, product_id: licenseDefaults.product_id, code, name: `The feature ${code}`, ...given })

/** A feature of a policy. */
export const coming = (code: string, given: Partial<TargetPolicy["features"][number]> = {}) => ({
  feature_id: `feat_${code}`,
  feature_code: code,
  feature_name: featureOf(code).name,
  enabled: true,
  metadata: {},
  ...given
})

export const assignmentOf = (code: string, given: Partial<Assignment> = {}): Assignment =>
  frozen({
    feature_id: `feat_${code}`,
    feature_code: code,
    feature_name: `The feature ${code}`,
    enabled: true,
    total_consumptions: 0,
    expiry_recorded: false,
    from_policy: false,
    metadata: {},
    created_at: noon - 90 * day,
    updated_at: noon - 90 * day,
    ...given
  })

const naming = ["fingerprint", "hostname", "container_id", "cluster_id", "namespace", "pod_name"] as const

/** The values that identify a machine, which no event may contain. */
export const sensitive = (binding: Binding): ReadonlyArray<string> => naming.flatMap((member) => binding[member] ?? [])

type BindingInput = Partial<Omit<Binding, "kind" | "key" | "hash" | "redacted">>

const bindingOf = (kind: Binding["kind"], key: string, given: BindingInput): Binding => {
  const named = naming.flatMap((member) =>
    given[member] === undefined ? [] : [[member, redacted(given[member])] as const]
  )
  return frozen({
    is_vm: false,
    is_container: kind === "container",
    ...given,
    kind,
    key,
    hash: () => sha256Hex(key),
    redacted: () => Object.fromEntries(named)
  })
}

export const hardware = (fingerprint: string, given: BindingInput = {}): Binding =>
  bindingOf("hardware", fingerprint, { hostname: `host of ${fingerprint}`, ...given, fingerprint })

/** A container. Its key is a digest of its ids. */
export const container = (pod_name: string, given: BindingInput = {}): Binding => {
  const ids = { cluster_id: given.cluster_id, namespace: given.namespace, pod_name, container_id: given.container_id }
  return bindingOf("container", sha256Hex(canonicalize(ids)), { ...given, pod_name })
}

/** The device of a binding: active in a slot, unless another status or `holds_slot: false` is given. */
export const deviceOf = (
  { kind, key, hash, redacted: _, app_version: __, ...described }: Binding,
  given: Partial<DeviceRecord> = {}
): DeviceRecord =>
  frozen({
    id: `dev_${sha256Hex(`${kind}:${key}`).slice(0, 8)}`,
    binding_kind: kind,
    binding_key: key,
    binding_hash: hash(),
    ...described,
    status: "active",
    holds_slot: given.status === undefined || given.status === "active",
    activated_at: noon - 60 * minute,
    first_seen_at: noon - 60 * day,
    last_seen_at: noon - 60 * minute,
    due_at: dueAfter(Math.max(given.activated_at ?? noon - 60 * minute, given.last_validated_at ?? 0)),
    metadata: {},
    created_at: noon - 60 * day,
    updated_at: noon - 60 * minute,
    ...given
  })

/** When a device heard of at an instant is due, by the interval of `rowsOf` or another one. */
export const dueAfter = (heardAt: number, intervalMinutes = policyDefaults.validation_interval_minutes): number =>
  heardAt + intervalMinutes * minute + 30 * second

/** A live lease of a device. */
export const leaseOf = (device: DeviceRecord, given: Partial<LeaseRecord> = {}): LeaseRecord =>
  frozen({
    id: `lse_${device.id}`,
    device_id: device.id,
    token_hash: sha256Hex(`lease_${device.id}`),
    status: "live",
    checked_out_at: noon - 10 * minute,
    heartbeat_at: noon - 10 * minute,
    expires_at: noon + 20 * minute,
    ...given
  })

/** The common part of runtime requests, with the key of `rowsOf`. */
export const requestOf = (binding: Binding): RuntimeCommand => frozen({ keyHash, binding })

/** A request to activate; a new device gets the id that `deviceOf` gives it. */
export const activationOf = (binding: Binding): ActivateCommand =>
  frozen({ ...requestOf(binding), newDeviceId: deviceOf(binding).id })
