/**
 * The commands of a license. A command is data; its rule is a pure function of (view, command, now) that returns an
 * acceptance (changes, events, and a function that builds the response) or a refusal. Rules use no clock, no storage
 * and no Effect services, so tests, the simulator and every node run the same rules.
 */

import type { Actor } from "../../access/CurrentActor.ts"
import type { Code } from "../../contract/api/ErrorCode.ts"
import type { RefusalFacts } from "../../contract/api/RefusalFacts.ts"
import type { BindingName, Changes, LicenseView, LinkKind } from "../model/LicenseRecords.ts"

/** The actor and request of a command, as recorded in its events and ledger rows. */
export interface Origin extends Actor {
  readonly request_id: string
  readonly ip_address: string | undefined
}

/** Data that a rule reads and that an actor may not have cached. It is fetched before the rule runs. */
export interface Needs {
  readonly binding?: BindingName
  readonly deviceId?: string
  /** A consumption that may have been counted before. */
  readonly eventId?: string
  readonly leaseToken?: string
  /** A feature of the license's product that may not be assigned yet. */
  readonly featureId?: string
  /** A policy that the license may move to. */
  readonly policyId?: string
  readonly appVersion?: string | undefined
  /** How many containers hold a slot, if the policy limits them. */
  readonly activeContainers?: boolean
  /** Every device that is active. */
  readonly activeDevices?: boolean
  /** Every live lease with its device, if the command may end them all. */
  readonly allLeases?: boolean
  /** How many leases are live. */
  readonly seats?: boolean
  /** How many devices a reset would change. */
  readonly resettable?: boolean | undefined
  /** The customer that owns the license. */
  readonly owner?: boolean
  /** The order that the license is linked to. */
  readonly ownOrder?: boolean
  /** Records outside the license, by their kind. */
  readonly links?: { readonly [K in LinkKind]?: string | undefined }
}

export interface Accepted<Reply> {
  readonly accepted: true
  readonly changes: Changes
  /** Builds the reply from the state after the changes. */
  readonly reply: (after: LicenseView) => Reply
}

export interface Refused<C extends Code> {
  readonly accepted: false
  readonly code: C
  readonly message: string
  readonly detail?: string | undefined
  /** What explains this refusal, beside what `Rule.explain` gives for every refusal. */
  readonly facts?: RefusalFacts
  /** Changes that record the refusal as an event; committed before the refusal is returned. */
  readonly recorded?: Changes
  /** Set if the same request succeeds later by itself. */
  readonly isTemporary?: boolean
}

export type Outcome<Reply, C extends Code> = Accepted<Reply> | Refused<C>

export interface Rule<Command, Reply, C extends Code> {
  /** The verb, as spans and metrics name it. */
  readonly name: string
  readonly needs?: (command: Command) => Needs
  /** Whether later commands need data that is fetched only after this command is committed. */
  readonly endsBatch?: (command: Command) => boolean
  readonly decide: (view: LicenseView, command: Command, now: number) => Outcome<Reply, C>
  /** For a rule whose refusals are signed: the facts about the license that each of them contains. */
  readonly explain?: (view: LicenseView, now: number) => RefusalFacts
}

export const accept = <Reply>(changes: Changes, reply: (after: LicenseView) => Reply): Accepted<Reply> => ({
  accepted: true,
  changes,
  reply
})

export const reject = <const C extends Code>(
  code: C,
  message: string,
  options?: Pick<Refused<C>, "detail" | "recorded" | "facts" | "isTemporary">
): Refused<C> => ({ accepted: false, code, message, ...options })
