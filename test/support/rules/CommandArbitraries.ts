/** Random requests and commands, alone and in sequences, for the random licenses of `LicenseArbitraries`. */
import * as fc from "fast-check"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { assign, unassign } from "../../../src/licensing/changes/Assignments.ts"
import { blacklist, type DeviceCommand, reset, unblacklist } from "../../../src/licensing/changes/DeviceActions.ts"
import { type RotateKeyCommand, rotateKey } from "../../../src/licensing/changes/KeyRotation.ts"
import { type MaintenanceCommand, renewMaintenance } from "../../../src/licensing/changes/MaintenanceRenewal.ts"
import { changePolicy, type PolicyChangeCommand } from "../../../src/licensing/changes/PolicyChange.ts"
import { type RenewCommand, renew } from "../../../src/licensing/changes/Renewal.ts"
import { type TransferCommand, transfer } from "../../../src/licensing/changes/Transfer.ts"
import { type UpdateCommand, update } from "../../../src/licensing/changes/Update.ts"
import { resetUsage, type UsageResetCommand } from "../../../src/licensing/changes/UsageReset.ts"
import type { Binding } from "../../../src/licensing/model/Binding.ts"
import type { LicenseView } from "../../../src/licensing/model/LicenseRecords.ts"
import { type ActivateCommand, activate, check, deactivate, validate } from "../../../src/licensing/rules/Activation.ts"
import type { RuntimeCommand } from "../../../src/licensing/rules/Admission.ts"
import { type ConsumeCommand, consume } from "../../../src/licensing/rules/Consumption.ts"
import {
  type CheckoutCommand,
  checkin,
  checkout,
  heartbeat,
  type LeaseCommand
} from "../../../src/licensing/rules/Floating.ts"
import type { Rule } from "../../../src/licensing/rules/LicenseCommand.ts"
import { reinstate, revoke, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { issueOffline } from "../../../src/licensing/rules/Offline.ts"
import { deactivateOwn } from "../../../src/licensing/rules/OwnDevices.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { bindings, featureCodes, formerToken, mostly } from "./LicenseArbitraries.ts"
import { activationOf, day, deviceOf, frozen, keyHash, leaseOf, minute, noon, second } from "./Licenses.ts"

/** The common part of all runtime requests. */
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

/** Part of every token of random checkouts. */
export const tokenMark = "token-of-a-checkout"

/** Borrowed times: none, past ones, and those at the limit of 30 days or at the end of access, and beside them. */
const untils = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(0, 10 * minute, day, 3 * day, 30 * day, 60 * day), fc.constantFrom(-1, 0, 0, 1))
      .map(([ahead, beside]) => noon + ahead + beside)
  }
)

/** A checkout with a new lease. */
export const checkouts = (requests: fc.Arbitrary<RuntimeCommand>): fc.Arbitrary<CheckoutCommand> =>
  fc.tuple(requests, fc.uuid(), untils).map(([request, unique, until]) => ({
    ...request,
    until,
    newDeviceId: deviceOf(request.binding).id,
    newLeaseId: `lse_${unique}`,
    leaseToken: `lease_${tokenMark}_${unique}`,
    tokenHash: sha256Hex(unique)
  }))

const keys = fc.oneof(
  { weight: 19, arbitrary: fc.constant(keyHash) },
  { weight: 1, arbitrary: fc.constant("0".repeat(64)) }
)

/** Commands for the leases of random licenses: current, former and unknown ones. */
export const leaseCommands = (bindings: ReadonlyArray<Binding>): fc.Arbitrary<LeaseCommand> =>
  fc.record({
    keyHash: keys,
    tokenHash: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...bindings.map((binding) => leaseOf(deviceOf(binding)).token_hash)) },
      { weight: 2, arbitrary: fc.constantFrom(...bindings.map((binding) => formerToken(deviceOf(binding)))) },
      { weight: 1, arbitrary: fc.constant(sha256Hex("unheard-of")) }
    )
  })

/** Commands for the lease that a device holds at the time of the decision, whatever its token. */
const holding = (bindings: ReadonlyArray<Binding>): fc.Arbitrary<LeaseCommand & { readonly device: string }> =>
  fc
    .tuple(leaseCommands(bindings), fc.constantFrom(...bindings))
    .map(([command, binding]) => ({ ...command, device: deviceOf(binding).id }))

const heldLease = (view: LicenseView, command: LeaseCommand & { readonly device: string }): LeaseCommand => ({
  keyHash: command.keyHash,
  tokenHash: view.liveLeaseOf(command.device)?.token_hash ?? command.tokenHash
})

const edits: fc.Arbitrary<UpdateCommand> = fc.record(
  {
    customer_name: fc.constantFrom(null, "Ada"),
    starts_at: fc.constantFrom(null, noon + minute),
    expires_at: fc.constantFrom(null, noon - day, noon + day, noon + 90 * day),
    maintenance_expires_at: fc.constantFrom(null, noon + day),
    max_activations: fc.constantFrom(null, 0, 1, 4),
    max_container_instances: fc.constantFrom(null, 0, 1),
    max_floating_users: fc.constantFrom(null, 0, 1, 4),
    max_transfers: fc.constantFrom(null, 0, 1),
    offline_grace_days: fc.constantFrom(null, 0, 30),
    self_deactivations_per_month: fc.constantFrom(null, 0, 2),
    metadata: fc.constantFrom({}, { note: "edited" })
  },
  { requiredKeys: [] }
)

const renewals: fc.Arbitrary<RenewCommand> = fc
  .tuple(
    fc.oneof(
      fc.record({ extend_by_days: fc.constantFrom(1, 30, 400) }),
      fc.record({ expires_at: fc.constantFrom(noon - day, noon + day, noon + 30 * day, noon + 90 * day) })
    ),
    fc.record(
      {
        order_id: fc.constantFrom("ord_1", "ord_1", "ord_foreign", "ord_unheard-of"),
        subscription_id: fc.constantFrom("sub_1", "sub_1", "sub_2", "sub_unheard-of")
      },
      { requiredKeys: [] }
    )
  )
  .map(([end, links]) => ({ ...end, ...links }))

const maintenances: fc.Arbitrary<MaintenanceCommand> = fc.oneof(
  fc.record({ extend_by_days: fc.constantFrom(1, 30, 400) }),
  fc.record({ maintenance_expires_at: fc.constantFrom(noon - day, noon + day, noon + 90 * day) })
)

const transfers: fc.Arbitrary<TransferCommand> = fc.record(
  {
    customer_id: fc.constantFrom("", "cust_a", "cust_b", "cust_unheard-of"),
    customer_email: fc.constantFrom("a@example.com", "b@example.com"),
    customer_name: fc.constantFrom("Ada", "Bob"),
    reset_devices: fc.boolean(),
    release_borrowed: fc.boolean()
  },
  { requiredKeys: [] }
)

const policyChanges: fc.Arbitrary<PolicyChangeCommand> = fc.record(
  {
    policy_id: fc.constantFrom("pol_1", "pol_2", "pol_2", "pol_3", "pol_foreign", "pol_unheard-of"),
    expires_at: fc.constantFrom(noon - day, noon + day, noon + 90 * day),
    keep_features: fc.boolean()
  },
  { requiredKeys: ["policy_id"] }
)

const usageResets: fc.Arbitrary<UsageResetCommand> = fc
  .tuple(
    fc.oneof(
      fc.record({ feature_id: fc.constantFrom("feat_api", "feat_export", "feat_unheard-of") }),
      fc.record({ feature_code: fc.constantFrom("api", "reports", "unheard-of") })
    ),
    fc.record(
      {
        max_consumptions: fc.constantFrom(0, 5, 100),
        add_credits: fc.constantFrom(1, 10, Number.MAX_SAFE_INTEGER),
        total_consumptions: fc.constantFrom(0, 4, 60)
      },
      { requiredKeys: [] }
    ),
    fc.boolean()
  )
  .map(([target, amounts, reset_consumed]) => ({ ...target, ...amounts, reset_consumed }))

/** Mostly the key of all requests, so that later ones are not all refused. */
const rotations: fc.Arbitrary<RotateKeyCommand> = fc
  .constantFrom(keyHash, keyHash, keyHash, "f".repeat(64))
  .map((key_hash) => ({ key_hash, license_key_prefix: "LK-11111", license_key_last4: "2222" }))

const deviceCommands = (bindings: ReadonlyArray<Binding>): fc.Arbitrary<DeviceCommand> =>
  fc.constantFrom(...bindings.map((binding) => ({ device_id: deviceOf(binding).id })), { device_id: "dev_unheard-of" })

const resets = fc
  .tuple(deviceCommands(bindings), fc.constantFrom(undefined, false, true))
  .map(([command, release_borrowed]): DeviceCommand => ({ ...command, release_borrowed }))

/** A command and the time that passes before it. */
export interface Step {
  readonly wait: number
  readonly rule: Rule<unknown, unknown, Code>
  readonly command: unknown
}

const steps = <Command, Reply, C extends Code>(
  weight: number,
  { name, decide, endsBatch }: Rule<Command, Reply, C>,
  commands: fc.Arbitrary<Command>
) => ({
  weight,
  arbitrary: fc.tuple(fc.constantFrom(0, 0, 1, second, minute, 11 * minute, day, 3 * day, 30 * day), commands).map(
    ([wait, command]): Step => ({
      wait,
      command,
      rule: {
        name,
        endsBatch: () => endsBatch?.(command) === true,
        decide: (view, _, now) => decide(view, frozen(command), now)
      }
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

/** All commands of a license. A new rule must be added to this list. */
export const anyStep: fc.Arbitrary<Step> = fc.oneof(
  steps(6, activate, activations),
  steps(3, validate, requests),
  steps(1, check, requests),
  steps(6, consume, consumptions),
  steps(3, deactivate, requests),
  steps(3, issueOffline, requests),
  steps(
    3,
    issueOffline,
    activations.map(({ newDeviceId, ...command }) => ({ ...command, activation: { newDeviceId } }))
  ),
  steps(
    3,
    deactivateOwn,
    deviceCommands(bindings).map(({ device_id }) => ({ keyHash, deviceId: device_id }))
  ),
  steps(6, checkout, checkouts(requests)),
  steps(3, ofHeldLease(heartbeat), holding(bindings)),
  steps(3, ofHeldLease(checkin), holding(bindings)),
  steps(3, assign, assigning),
  steps(1, unassign, fc.record({ feature_id: fc.constantFrom("feat_api", "feat_export", "feat_unheard-of") })),
  steps(3, update, edits),
  steps(3, renew, renewals),
  steps(2, renewMaintenance, maintenances),
  steps(3, transfer, transfers),
  steps(3, changePolicy, policyChanges),
  steps(3, resetUsage, usageResets),
  steps(1, rotateKey, rotations),
  steps(2, reset, resets),
  steps(2, blacklist, deviceCommands(bindings)),
  steps(3, unblacklist, deviceCommands(bindings)),
  steps(1, suspend, nothing),
  steps(2, reinstate, nothing),
  { weight: 1, arbitrary: fc.oneof(steps(1, revoke, nothing), steps(9, reinstate, nothing)) }
)
