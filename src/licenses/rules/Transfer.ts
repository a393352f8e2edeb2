/** Transfers a license to another owner, and optionally resets the devices of the previous one. */

import { changesOf } from "../../events/Changes.ts"
import type { LicenseTransfer } from "../model/License.ts"
import {
  type Changes,
  type LicenseRecord,
  type LicenseSnapshot,
  type LicenseView,
  type PolicyRecord,
  snapshot
} from "../model/LicenseRecords.ts"
import { refuseRevoked } from "./Assignments.ts"
import { resetDevice } from "./DeviceActions.ts"
import { isResettable } from "./DeviceTransitions.ts"
import { accept, type Refused, type Rule, reject } from "./LicenseCommand.ts"
import { endAll } from "./Lifecycle.ts"

export type TransferCommand = typeof LicenseTransfer.Type

type TransferCode = "LICENSE_STATE_CONFLICT" | "NOT_FOUND" | "TRANSFER_LIMIT_REACHED"

const ownerFields = ["customer_id", "customer_email", "customer_name"] as const

export const transfer: Rule<TransferCommand, LicenseSnapshot, TransferCode> = {
  name: "transfer",
  needs: ({ customer_id, reset_devices }) => ({
    links: { customer: customer_id || undefined },
    resettable: reset_devices,
    allLeases: reset_devices === true
  }),
  decide: (view, command, now) => {
    const refused = refuseRevoked(view, now) ?? refuseUnknownCustomer(view, command)
    if (refused !== undefined) return refused
    const { license } = view
    const owner = ownerAfter(license, command)
    const changes = changesOf<Partial<LicenseRecord>>(license, owner, ownerFields)
    const ownerChanges = Object.keys(changes).length > 0
    if (ownerChanges && isExhausted(license, view.policy)) {
      return reject("TRANSFER_LIMIT_REACHED", "The license was transferred as often as its policy allows.", {
        detail: String(view.policy.max_transfers)
      })
    }
    const reset = command.reset_devices === true ? resetAll(view, now) : noReset
    if (!ownerChanges && reset.count === 0) return accept({}, snapshot)
    const { license: licenseChanges, ...devices } = reset.changes
    return accept(
      {
        ...devices,
        license: {
          ...licenseChanges,
          ...(ownerChanges && { ...owner, times_transferred: license.times_transferred + 1 }),
          updated_at: now
        },
        entitlement: true,
        events: [
          {
            event_type: "license.transferred",
            resource_type: "license",
            resource_id: license.id,
            metadata: { ...(ownerChanges && { changes }), ...(reset.count > 0 && { devices_reset: reset.count }) }
          }
        ]
      },
      snapshot
    )
  }
}

const refuseUnknownCustomer = (
  view: LicenseView,
  { customer_id }: TransferCommand
): Refused<"NOT_FOUND"> | undefined =>
  customer_id === undefined || customer_id === "" || view.link("customer", customer_id) !== undefined
    ? undefined
    : reject("NOT_FOUND", `Nothing has the customer_id ${customer_id}.`, { detail: "customer_id" })

/** Absent fields keep their value; an empty customer_id clears the link. */
const ownerAfter = (license: LicenseRecord, command: TransferCommand) => ({
  customer_id: command.customer_id === undefined ? license.customer_id : command.customer_id || undefined,
  customer_email: command.customer_email ?? license.customer_email,
  customer_name: command.customer_name ?? license.customer_name
})

/** 0 = unlimited. */
const isExhausted = ({ times_transferred }: LicenseRecord, { max_transfers }: PolicyRecord): boolean =>
  max_transfers > 0 && times_transferred >= max_transfers

interface Reset {
  readonly count: number
  readonly changes: Changes
}

const noReset: Reset = { count: 0, changes: {} }

/** Blacklisted devices stay blacklisted. */
const resetAll = (view: LicenseView, now: number): Reset => {
  const devices = Array.from(view.devices).filter(isResettable)
  const otherCount = view.otherResettable
  return {
    count: devices.length + otherCount,
    changes: {
      license: { active_device_count: 0 },
      devices: devices.map((device) => resetDevice(device, now)),
      ...(otherCount > 0 && { othersReset: true }),
      leases: endAll(view.liveLeases, now)
    }
  }
}
