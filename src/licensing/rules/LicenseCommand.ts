/**
 * The commands of a license. A command is data. Its rule is a pure function of (view, command, now) that returns a
 * refusal, or changes with a function that builds the response. Rules use no clock, storage or services, so tests and
 * the simulator run the same rules.
 */

import type { Actor } from "../../access/CurrentActor.ts"
import type { Code } from "../../contract/api/ErrorCode.ts"
import type { RefusalFacts } from "../../contract/api/RefusalFacts.ts"
import type { StoredResponseRow } from "../../contract/api/StoredResponse.ts"
import type { NewEvent } from "../../ledger/events/Entry.ts"
import type { MailRow } from "../../ledger/mail/MailRows.ts"
import type { BindingName, Changes, LicenseView, LinkKind } from "../model/LicenseRecords.ts"

/** The actor and request of a command, as recorded in its events and ledger rows. */
export interface Origin extends Actor {
  readonly request_id: string
  readonly ip_address: string | undefined
  /** The job whose part the command is. */
  readonly bulk_job_id?: string
}

/** What is stored in the same transaction as a command's change. */
export interface StoredWithChange {
  /** Of a request with an Idempotency-Key. */
  readonly response?: StoredResponseRow | undefined
  readonly mails?: ReadonlyArray<MailRow> | undefined
}

/** Data that a rule reads and that may not be cached. It is fetched before the rule runs. */
export interface Needs {
  readonly binding?: BindingName
  readonly deviceId?: string
  /** A consumption that may be counted already. */
  readonly eventId?: string
  /** A consumption to take back, looked up with its ledger row. */
  readonly reverses?: { readonly eventId: string; readonly featureCode: string }
  readonly leaseToken?: string
  readonly featureId?: string
  readonly policyId?: string
  readonly appVersion?: string | undefined
  /** The number of containers with a slot, if the policy limits them. */
  readonly activeContainers?: boolean
  readonly activeDevices?: boolean
  /** All live leases with their devices, if the command may end them all. */
  readonly allLeases?: boolean
  /** The number of live leases. */
  readonly seats?: boolean
  /** The number of devices that a reset changes. */
  readonly resettable?: boolean | undefined
  readonly owner?: boolean
  readonly ownOrder?: boolean
  readonly ownSubscription?: boolean
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
  /** Facts about this refusal, in addition to those of `Rule.explain`. */
  readonly facts?: RefusalFacts
  /** Changes that record the refusal as an event; committed before the refusal is returned. */
  readonly recorded?: Changes
  /** Whether the same request succeeds later. */
  readonly isTemporary?: boolean
}

export type Outcome<Reply, C extends Code> = Accepted<Reply> | Refused<C>

export interface Rule<Command, Reply, C extends Code> {
  /** The verb in spans and metrics. */
  readonly name: string
  readonly needs?: (command: Command) => Needs
  /** Whether later commands need data that is fetched only after this command is committed. */
  readonly endsBatch?: (command: Command) => boolean
  readonly decide: (view: LicenseView, command: Command, now: number) => Outcome<Reply, C>
  /** For rules with signed refusals: the facts about the license in each of them. */
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

export const licenseEvent = (
  event_type: NewEvent["event_type"],
  licenseId: string,
  metadata: NewEvent["metadata"]
): NewEvent => ({ event_type, resource_type: "license", resource_id: licenseId, metadata })
