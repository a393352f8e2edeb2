/** The operations of a node: for each the production code that runs it and the model's expected answer. */
import { Clock, Effect, identity, Semaphore } from "effect"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { assign, unassign } from "../../../src/licensing/changes/Assignments.ts"
import { blacklist, reset, unblacklist } from "../../../src/licensing/changes/DeviceActions.ts"
import { rotateKey } from "../../../src/licensing/changes/KeyRotation.ts"
import { renewMaintenance } from "../../../src/licensing/changes/MaintenanceRenewal.ts"
import { changePolicy } from "../../../src/licensing/changes/PolicyChange.ts"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { transfer } from "../../../src/licensing/changes/Transfer.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { resetUsage } from "../../../src/licensing/changes/UsageReset.ts"
import { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import { presentSnapshot } from "../../../src/licensing/management/PresentLicense.ts"
import type { LicenseSnapshot } from "../../../src/licensing/model/LicenseRecords.ts"
import * as Activation from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import * as Floating from "../../../src/licensing/rules/Floating.ts"
import type { Rule } from "../../../src/licensing/rules/LicenseCommand.ts"
import * as Lifecycle from "../../../src/licensing/rules/Lifecycle.ts"
import { issueOffline } from "../../../src/licensing/rules/Offline.ts"
import { deactivateOwn } from "../../../src/licensing/rules/OwnDevices.ts"
import { ExpirySweep } from "../../../src/licensing/sweeps/ExpirySweep.ts"
import { FeatureExpirySweep } from "../../../src/licensing/sweeps/FeatureExpirySweep.ts"
import { HeartbeatSweep } from "../../../src/licensing/sweeps/HeartbeatSweep.ts"
import { LeaseSweep } from "../../../src/licensing/sweeps/LeaseSweep.ts"
import { PeriodSweep } from "../../../src/licensing/sweeps/PeriodSweep.ts"
import { Subscriptions } from "../../../src/vendor/commerce/Subscriptions.ts"
import { Features } from "../../../src/vendor/features/Features.ts"
import { Policies } from "../../../src/vendor/policies/Policies.ts"
import type { PolicyFeatureSet } from "../../../src/vendor/policies/PolicyFeature.ts"
import { PolicyFeatures } from "../../../src/vendor/policies/PolicyFeatures.ts"
import { Versions } from "../../../src/vendor/versions/Versions.ts"
import * as Assignments from "../model/Assignments.ts"
import * as Seats from "../model/Leases.ts"
import * as Management from "../model/Management.ts"
import type { Answer, Situation } from "../model/Model.ts"
import * as Moves from "../model/Moves.ts"
import * as Runtime from "../model/Runtime.ts"
import type { Services } from "../nodes/Node.ts"
import { product } from "./InitialData.ts"
import type { Operation } from "./Plan.ts"

/** One request of a client or an operator. */
export interface Call {
  /** The request id in events and ledger rows. */
  readonly request: string
  readonly operation: Operation
  /** The license, policy, feature or version that it is about. */
  readonly subject: string
  readonly command: unknown
  /** The node that receives it. */
  readonly node: number
  /** Whether it was sent before. */
  readonly isRepeated: boolean
  /** The Idempotency-Key under which its answer is stored. */
  readonly scope: string | undefined
}

/** A request about a feature that comes with a policy. */
export type PolicyFeatureCommand = typeof PolicyFeatureSet.Type & { readonly feature_id: string }

/** A subscription whose period is edited. */
export interface SubscriptionCommand {
  readonly current_period_start: number
  readonly current_period_end: number
}

interface OperationCase {
  readonly ask: (call: Call) => Effect.Effect<unknown, unknown, Services>
  /** Undefined for operations that do not concern a license. */
  readonly expected?: (situation: Situation, command: unknown) => Answer
}

const shown = (snapshot: LicenseSnapshot) =>
  Effect.map(Clock.currentTimeMillis, (now) => presentSnapshot(snapshot, now))

const ofLicense = <Command, Reply, C extends Code>(
  rule: Rule<Command, Reply, C>,
  expected: (situation: Situation, command: Command) => Answer,
  finish: (reply: Reply) => Effect.Effect<unknown> = Effect.succeed
): OperationCase => ({
  ask: ({ subject, command }) =>
    LicenseActors.use((actors) => actors.askWith(subject, rule, command as Command, identity, finish)),
  expected: expected as never
})

const edits = Semaphore.makeUnsafe(1)

/**
 * An edit of the catalog. Edits of one step follow each other: which of two waits for the other's row, and which of two codes is
 * refused, would otherwise depend on the speed of the database.
 */
const inTurn = (ask: OperationCase["ask"]): OperationCase => ({ ask: (call) => edits.withPermit(ask(call)) })

export const operations: { readonly [operation in Operation]: OperationCase } = {
  activate: ofLicense(Activation.activate, Runtime.activate),
  validate: ofLicense(Activation.validate, Runtime.validate),
  check: ofLicense(Activation.check, Runtime.check),
  consume: ofLicense(consume, Runtime.consume),
  deactivate: ofLicense(Activation.deactivate, Runtime.deactivate),
  offline: ofLicense(issueOffline, Runtime.issueOffline),
  "deactivate own": ofLicense(deactivateOwn, Runtime.deactivateOwn),
  checkout: ofLicense(Floating.checkout, Seats.checkout),
  heartbeat: ofLicense(Floating.heartbeat, Seats.heartbeat),
  checkin: ofLicense(Floating.checkin, Seats.checkin),
  suspend: ofLicense(Lifecycle.suspend, Management.suspend, shown),
  reinstate: ofLicense(Lifecycle.reinstate, Management.reinstate, shown),
  revoke: ofLicense(Lifecycle.revoke, Management.revoke, shown),
  renew: ofLicense(renew, Management.renew, shown),
  "renew maintenance": ofLicense(renewMaintenance, Management.renewMaintenance, shown),
  transfer: ofLicense(transfer, Management.transfer, shown),
  "change policy": ofLicense(changePolicy, Moves.changePolicy, shown),
  "reset usage": ofLicense(resetUsage, Assignments.resetUsage),
  "rotate key": ofLicense(rotateKey, Management.rotateKey, shown),
  assign: ofLicense(assign, Assignments.assign),
  unassign: ofLicense(unassign, Assignments.unassign),
  "reset device": ofLicense(reset, Management.resetDevice),
  blacklist: ofLicense(blacklist, Management.blacklist),
  unblacklist: ofLicense(unblacklist, Management.unblacklist),
  update: ofLicense(update, Management.update, shown),
  "edit policy": inTurn(({ subject, command }) =>
    Policies.use((policies) => policies.update(subject, command as never))
  ),
  "set policy feature": inTurn(({ subject, command }) => {
    const { feature_id, ...input } = command as PolicyFeatureCommand
    return PolicyFeatures.use((features) => features.set(subject, feature_id, input))
  }),
  "delete policy feature": inTurn(({ subject, command }) =>
    PolicyFeatures.use((features) => features.delete(subject, (command as PolicyFeatureCommand).feature_id))
  ),
  "edit feature": inTurn(({ subject, command }) =>
    Features.use((features) => features.update(subject, command as never))
  ),
  "create feature": inTurn(({ command }) => Features.use((features) => features.create(product, command as never))),
  "delete feature": inTurn(({ subject }) => Features.use((features) => features.delete(subject))),
  "create version": inTurn(({ command }) => Versions.use((versions) => versions.create(product, command as never))),
  "delete version": inTurn(({ subject }) => Versions.use((versions) => versions.delete(product, subject))),
  "sweep expiry": {
    ask: () =>
      Effect.andThen(
        FeatureExpirySweep.use(({ pass }) => pass),
        ExpirySweep.use(({ pass }) => pass)
      )
  },
  "sweep leases": { ask: () => LeaseSweep.use(({ pass }) => pass) },
  "sweep heartbeats": { ask: () => HeartbeatSweep.use(({ pass }) => pass) },
  "sweep periods": { ask: () => PeriodSweep.use(({ pass }) => pass) },
  "take back": ofLicense(consume, Runtime.consume),
  "edit subscription": inTurn(({ subject, command }) =>
    Subscriptions.use((subscriptions) => subscriptions.update(subject, command as SubscriptionCommand))
  )
}

export const isOfLicense = ({ operation }: Call): boolean => operations[operation].expected !== undefined
