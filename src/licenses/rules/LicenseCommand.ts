/**
 * What can be asked of a license. A command is data; its rule is a pure function of (view, command, now) that answers with
 * an acceptance — changes, events, and how to word the answer — or with a refusal. Rules know no clock, no storage and no
 * Effect services, so they can be tested, simulated and run on any node alike.
 */
import type { Code } from "../../api/ErrorCode.ts"
import type { Actor } from "../../auth/CurrentActor.ts"
import type { NewEvent } from "../../events/EventLog.ts"
import type { BindingName, Changes, LicenseView, LinkKind } from "../model/LicenseRecords.ts"

/** On whose behalf a command runs: what its events and ledger rows say. */
export interface Origin extends Actor {
  readonly request_id: string
  readonly ip_address: string | undefined
}

/** What a rule may look at that an actor does not hold in memory by itself; it is fetched before the rule runs. */
export interface Needs {
  readonly binding?: BindingName
  readonly deviceId?: string
  /** A consumption that may have been counted before. */
  readonly eventId?: string
  readonly leaseToken?: string
  /** A feature of the license's product that may not be assigned yet. */
  readonly featureId?: string
  readonly appVersion?: string | undefined
  /** How many containers hold a slot, where the policy limits them. */
  readonly activeContainers?: boolean
  /** Every device that is active. */
  readonly activeDevices?: boolean
  /** Every live lease with its device, where the command may end them all. */
  readonly allLeases?: boolean
  /** How many leases are live. */
  readonly seats?: boolean
  /** How many devices a reset would move. */
  readonly resettable?: boolean | undefined
  /** Records outside the license, by their kind. */
  readonly links?: { readonly [K in LinkKind]?: string | undefined }
}

export interface Accepted<Reply> {
  readonly accepted: true
  readonly changes: Changes
  /** Words the answer from the state after the changes. */
  readonly reply: (after: LicenseView) => Reply
}

export interface Refused<C extends Code> {
  readonly accepted: false
  readonly code: C
  readonly message: string
  readonly detail?: string | undefined
  /** What the refusal is worth recording as; committed before the refusal is answered. */
  readonly events?: ReadonlyArray<NewEvent>
}

export type Outcome<Reply, C extends Code> = Accepted<Reply> | Refused<C>

export interface Rule<Command, Reply, C extends Code> {
  /** The verb, as spans and metrics name it. */
  readonly name: string
  readonly needs?: (command: Command) => Needs
  readonly decide: (view: LicenseView, command: Command, now: number) => Outcome<Reply, C>
}

export const accept = <Reply>(changes: Changes, reply: (after: LicenseView) => Reply): Accepted<Reply> => ({
  accepted: true,
  changes,
  reply
})

export const reject = <const C extends Code>(
  code: C,
  message: string,
  options?: { readonly detail?: string | undefined; readonly events?: ReadonlyArray<NewEvent> }
): Refused<C> => ({ accepted: false, code, message, ...options })
