/** The fields of a policy, new or not. */
import { LicenseType } from "../../../vendor/policies/Policy.ts"
import { choice, choicesOf, type FieldsOf, flag, lines, number, numbers, text } from "../parts/Fields.tsx"
import { metadata } from "../parts/Metadata.tsx"
import { fieldLabels } from "../service/Failures.ts"
import type { Payload } from "../service/Service.ts"

const starts = [
  { id: "creation", name: "When it is issued" },
  { id: "first_activation", name: "When it is first activated" }
] as const

export const policyFields: FieldsOf<Payload<"createPolicy">> = {
  name: text("Name", { required: true }),
  code: text("Code", { required: true, hint: "Lower-case letters, digits, dots and dashes." }),
  license_type: choice("Type of its licenses", choicesOf(LicenseType.literals), { required: true }),
  max_activations: number("Devices", { hint: "0 means unlimited." }),
  max_floating_users: number("Floating seats", { hint: "Leave empty for none." }),
  borrow_days_max: number("Days for which a seat may be borrowed", {
    hint: "Leave empty if seats cannot be borrowed."
  }),
  floating_timeout_minutes: number("Minutes until a silent seat is free"),
  max_container_instances: number("Container instances", {
    hint: "Leave empty to count containers as devices. 0 means unlimited."
  }),
  duration_days: number(fieldLabels.duration_days, { hint: "Leave empty to give each license its own expiry." }),
  maintenance_days: number("Days of maintenance", { hint: "Perpetual licenses only. Leave empty for no end." }),
  duration_starts: choice("The term starts", starts),
  reminder_days: numbers("Days of reminders", {
    hint: "At most 5, such as 30, 7, 1: so long before a license or its maintenance ends, an event tells. Leave empty for none."
  }),
  mail_reminders: flag("Reminders are also mailed to customers"),
  grace_period_days: number("Days of grace after the expiry"),
  validation_interval_minutes: number("Minutes between two validations"),
  require_heartbeat: flag("A device that stops validating loses its slot"),
  allow_offline_activation: flag("Offline use is allowed"),
  offline_grace_days: number("Days of offline use"),
  hold_offline_slots: flag("A device that leaves keeps its slot until its offline use ends"),
  self_deactivations_per_month: number("Devices that customers may remove in 30 days", { hint: "0 is none." }),
  show_licensee: flag("Applications see the customer’s name"),
  show_metadata: lines("Metadata that applications see", { hint: "A name in each line, at most 16." }),
  public_trial: flag("Applications may start trials without a key"),
  allow_vm: flag("Virtual machines are allowed"),
  allow_container: flag("Containers are allowed"),
  allow_transfer: flag(fieldLabels.allow_transfer),
  max_transfers: number(fieldLabels.max_transfers, { hint: "0 means unlimited." }),
  metadata: metadata()
}
