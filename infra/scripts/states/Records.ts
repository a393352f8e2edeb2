/** Runs the service's rules on fixture records, with the service's own `PendingChanges` and without a database. */
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { PendingChanges } from "../../../src/licensing/engine/PendingChanges.ts"
import type { DeviceStatus } from "../../../src/licensing/model/Device.ts"
import type {
  DeviceRecord,
  LeaseRecord,
  LeaseStatus,
  LicenseRecord,
  PolicyRecord
} from "../../../src/licensing/model/LicenseRecords.ts"
import type { Rule } from "../../../src/licensing/rules/LicenseCommand.ts"
import { settle } from "../../../src/licensing/rules/Lifecycle.ts"
import { CommittedState } from "../../../src/licensing/state/CommittedState.ts"
import { heartbeatDueAt } from "../../../src/vendor/policies/Policy.ts"

export const minute = 60_000
export const day = 86_400_000
export const noon = Date.UTC(2030, 0, 15, 12)
export const graceDays = 3

export const keyHash = "a".repeat(64)
export const tokenHash = "b".repeat(64)

const policy: PolicyRecord = {
  id: "pol_1",
  license_type: "subscription",
  max_activations: 9,
  max_floating_users: 9,
  floating_timeout_minutes: 30,
  grace_period_days: graceDays,
  validation_interval_minutes: 60,
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

/** Active for another 30 days. */
export const license: LicenseRecord & { readonly expires_at: number } = {
  id: "lic_1",
  product_id: "prod_1",
  policy_id: policy.id,
  key_hash: keyHash,
  license_key_prefix: "LK-00000",
  license_key_last4: "0000",
  status: "active",
  expires_at: noon + 30 * day,
  active_device_count: 1,
  times_activated: 1,
  times_transferred: 0,
  total_consumptions: 0,
  entitlement_counter: 1,
  metadata: {},
  revision: 1,
  created_at: noon,
  updated_at: noon
}

export const bindingOf = (key: string) => ({
  kind: "hardware" as const,
  key,
  fingerprint: key,
  is_vm: false,
  is_container: false,
  hash: () => "",
  redacted: () => ({})
})

export const deviceOf = (name: string, status: DeviceStatus, holds_slot: boolean): DeviceRecord => ({
  id: `dev_${name}`,
  binding_kind: "hardware",
  binding_key: name,
  binding_hash: "",
  is_vm: false,
  is_container: false,
  status,
  holds_slot,
  activated_at: holds_slot ? noon : undefined,
  first_seen_at: noon,
  last_seen_at: noon,
  due_at: heartbeatDueAt(policy, noon),
  metadata: {},
  created_at: noon,
  updated_at: noon
})

/** A lease of the device `dev_seat`. */
export const leaseOf = (status: LeaseStatus, expires_at = noon + 30 * minute): LeaseRecord => ({
  id: "lse_1",
  device_id: "dev_seat",
  token_hash: tokenHash,
  status,
  checked_out_at: noon,
  heartbeat_at: noon,
  expires_at
})

/** The differences from an active license without devices. */
export interface Fixture {
  readonly license?: Partial<LicenseRecord>
  readonly policy?: Partial<PolicyRecord>
  readonly devices?: ReadonlyArray<DeviceRecord>
  readonly lease?: LeaseRecord
}

/** A command and its time, by default noon; without a rule only time passes. */
export interface Execution {
  readonly rule?: Rule<never, unknown, Code>
  readonly command?: unknown
  readonly at?: number
}

export interface Outcome {
  /** The state after the command. */
  readonly after: PendingChanges
  readonly refused: Code | undefined
}

const origin = { actor_type: "system", actor_id: "", request_id: "", ip_address: undefined } as const

/** A policy with the same rules, to which licenses can move. */
export const otherPolicy = "pol_2"

export const decide = (fixture: Fixture, { rule, command, at = noon }: Execution): Outcome => {
  const { lease, devices = [] } = fixture
  const isLive = lease?.status === "live"
  const state = new CommittedState({
    license: { ...license, ...fixture.license },
    policy: { ...policy, ...fixture.policy },
    productCode: "product",
    catalogRevision: 1,
    assignments: [],
    devices,
    devicesComplete: true,
    leases: lease !== undefined && isLive ? [lease] : [],
    lapsingFrom: Number.POSITIVE_INFINITY,
    silentFrom: Number.POSITIVE_INFINITY
  })
  const after = new PendingChanges(state, {
    counted: new Map(),
    features: new Map(),
    versions: undefined,
    marks: new Map(),
    endedLeases: new Map(lease === undefined || isLive ? [] : [[lease.token_hash, lease]]),
    policies: new Map([
      [otherPolicy, { policy: { ...policy, id: otherPolicy }, product_id: license.product_id, features: [] }]
    ]),
    links: [],
    otherResettable: 0
  })
  after.settle(settle(after, at), at)
  if (rule === undefined) return { after, refused: undefined }
  const outcome = rule.decide(after, command as never, at)
  if (!outcome.accepted) return { after, refused: outcome.code }
  after.apply(outcome.changes, origin, at)
  return { after, refused: undefined }
}
