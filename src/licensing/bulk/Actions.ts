/** The rule of each action, and the command that a job gives to each license. The rules are those of single licenses. */
import type { Code } from "../../contract/api/ErrorCode.ts"
import { changePolicy } from "../changes/PolicyChange.ts"
import { renew } from "../changes/Renewal.ts"
import { transfer } from "../changes/Transfer.ts"
import { update } from "../changes/Update.ts"
import type { LicenseRecord } from "../model/LicenseRecords.ts"
import type { Rule } from "../rules/LicenseCommand.ts"
import * as Lifecycle from "../rules/Lifecycle.ts"
import type { BulkAction, BulkParameters } from "./BulkJob.ts"

/** The type of the command is known only within an action. */
export interface Action<Parameters = BulkParameters> {
  readonly rule: Rule<unknown, unknown, Code>
  readonly commandOf: (parameters: Parameters, license: LicenseRecord) => unknown
  /** Whether features, devices and leases decide nothing: then a dry run reads none. */
  readonly needsBare: boolean
}

const action = <Command, Reply, C extends Code>(
  rule: Rule<Command, Reply, C>,
  commandOf: (parameters: BulkParameters, license: LicenseRecord) => Command,
  needsBare = true
): Action => ({ rule: rule as never, commandOf, needsBare })

const asGiven = (parameters: BulkParameters) => parameters

export const actions: { readonly [A in BulkAction]: Action } = {
  suspend: action(Lifecycle.suspend, asGiven),
  reinstate: action(Lifecycle.reinstate, asGiven),
  revoke: action(Lifecycle.revoke, asGiven),
  renew: action(renew, asGiven),
  policy: action(changePolicy, ({ policy_id = "", ...parameters }) => ({ ...parameters, policy_id }), false),
  apply_policy: action(changePolicy, (_, { policy_id }) => ({ policy_id }), false),
  update: action(update, asGiven),
  reset_devices: action(transfer, (parameters) => ({ ...parameters, reset_devices: true }), false)
}
