/** The changes that can be made to many licenses, in words. */
import type { BulkAction, BulkJob, BulkParameters } from "../../../licensing/bulk/BulkJob.ts"
import { type ChangeFieldsOf, flag, lastDay, number } from "../parts/Fields.tsx"
import { metadata } from "../parts/Metadata.tsx"

export interface BulkChange {
  readonly action: BulkAction
  readonly label: string
  /** The button that changes so many licenses. */
  readonly send: (licenses: string) => string
  /** What happens to the licenses. */
  readonly effect: string
  readonly danger?: true
  /** It has a button of its own; the others are in a menu. */
  readonly isFrequent?: true
  readonly fields?: ChangeFieldsOf<BulkParameters>
  readonly initial?: BulkParameters
}

/** Entries are given only if there are some: none would remove those of all licenses. */
const newMetadata = () => {
  const field = metadata()
  const read = (texts: ReadonlyArray<string>) => {
    const value = field.read(texts) ?? {}
    return Object.keys(value).length === 0 ? undefined : value
  }
  return { ...field, hint: "Replaces all metadata of each license. Without entries it stays as it is.", read }
}

export const bulkChanges: ReadonlyArray<BulkChange> = [
  {
    action: "suspend",
    label: "Suspend",
    send: (licenses) => `Suspend ${licenses}`,
    effect:
      "The licenses stop working at once, and their floating seats end, except borrowed ones. Devices stay, and the licenses can be reinstated.",
    danger: true,
    isFrequent: true
  },
  {
    action: "reinstate",
    label: "Reinstate",
    send: (licenses) => `Reinstate ${licenses}`,
    effect: "The licenses work again, each in the state that its dates give. Devices need no new activation.",
    isFrequent: true
  },
  {
    action: "renew",
    label: "Extend",
    send: (licenses) => `Extend ${licenses}`,
    effect: "The licenses expire later. Those that have expired work again at once; suspended ones stay suspended.",
    isFrequent: true,
    fields: {
      extend_by_days: number("Days to add", { hint: "They count from each expiry, or from today if it has passed." }),
      expires_at: lastDay("Or until the end of", { hint: "Give either days or a date." })
    },
    initial: { extend_by_days: 30 }
  },
  {
    action: "policy",
    label: "Move to a policy",
    send: (licenses) => `Move ${licenses}`,
    effect:
      "The licenses follow the new policy at once. Devices and seats stay; those beyond a lower limit stay until they end."
  },
  {
    action: "apply_policy",
    label: "Apply the policy",
    send: (licenses) => `Apply the policy to ${licenses}`,
    effect:
      "Each license gets the features and quotas that its policy has now, and loses those that the policy lost. What was set by hand stays, and so do counts."
  },
  {
    action: "update",
    label: "Change limits and metadata",
    send: (licenses) => `Change ${licenses}`,
    effect:
      "The values hold for each license in place of the policy’s. A lower limit ends nothing: what is in use stays until it ends. What is left empty stays as it is.",
    fields: {
      max_floating_users: number("Floating seats"),
      max_activations: number("Devices", { hint: "0 means unlimited." }),
      max_container_instances: number("Container instances", { hint: "0 means unlimited." }),
      max_transfers: number("Transfers", { hint: "0 means unlimited." }),
      offline_grace_days: number("Days offline"),
      self_deactivations_per_month: number("Devices removed in 30 days", { hint: "By the customer. 0 is none." }),
      metadata: newMetadata()
    }
  },
  {
    action: "reset_devices",
    label: "Reset devices",
    send: (licenses) => `Reset the devices of ${licenses}`,
    effect: "All devices of the licenses are freed, and their floating seats end. Each device must be activated again.",
    fields: { release_borrowed: flag("Also free borrowed seats") },
    danger: true
  },
  {
    action: "revoke",
    label: "Revoke",
    send: (licenses) => `Revoke ${licenses}`,
    effect: "The licenses stop working for ever: all devices are deactivated and all seats end. This cannot be undone.",
    danger: true
  }
]

export const changeOf = (wanted: BulkAction): BulkChange => bulkChanges.find(({ action }) => action === wanted)!

/** A check is a job that changes nothing. */
export const nameOfJob = ({ dry_run }: BulkJob, name: string): string =>
  dry_run ? `Check: ${name.charAt(0).toLowerCase()}${name.slice(1)}` : name
