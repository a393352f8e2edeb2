/** Transfers a license to another owner. Optionally resets the previous owner's devices and replaces the key. */

import { unknownId } from "../../contract/api/Failure.ts"
import { changesOf } from "../../ledger/events/Changes.ts"
import { isResettable } from "../model/DeviceTransitions.ts"
import type { LicenseTransfer } from "../model/License.ts"
import {
  type Changes,
  type LicenseRecord,
  type LicenseSnapshot,
  type LicenseView,
  snapshot
} from "../model/LicenseRecords.ts"
import type { Limits } from "../model/Limits.ts"
import { accept, licenseEvent, type Refused, type Rule, reject } from "../rules/LicenseCommand.ts"
import { endAll } from "../rules/Lifecycle.ts"
import { borrowedUntil, endUnborrowed } from "../rules/Seats.ts"
import { refuseRevoked } from "./Assignments.ts"
import { resetDevice } from "./DeviceActions.ts"
import { keyRotatedEvent, type RotateKeyCommand } from "./KeyRotation.ts"
import { refuseErasing } from "./Linkage.ts"

export interface TransferCommand extends Omit<typeof LicenseTransfer.Type, "rotate_key"> {
  /** The stored values of the new key, if the transfer replaces the key. */
  readonly newKey?: RotateKeyCommand | undefined
}

type TransferCode =
  | "LICENSE_STATE_CONFLICT"
  | "CONFLICT"
  | "NOT_FOUND"
  | "TRANSFER_NOT_ALLOWED"
  | "TRANSFER_LIMIT_REACHED"

const ownerFields = ["customer_id", "customer_email", "customer_name"] as const

export const transfer: Rule<TransferCommand, LicenseSnapshot, TransferCode> = {
  name: "transfer",
  needs: ({ customer_id, reset_devices }) => ({
    links: { customer: customer_id || undefined },
    owner: true,
    resettable: reset_devices,
    allLeases: reset_devices === true
  }),
  decide: (view, command, now) => {
    const refused = refuseRevoked(view, now) ?? refuseUnknownCustomer(view, command)
    if (refused !== undefined) return refused
    const { license } = view
    const { newKey } = command
    const owner = ownerAfter(view, command)
    const changes = changesOf<Partial<LicenseRecord>>(license, owner, ownerFields)
    const ownerChanges = Object.keys(changes).length > 0
    const erasing = ownerChanges ? refuseErasing(view, owner.customer_id) : undefined
    if (erasing !== undefined) return erasing
    if (ownerChanges && !view.policy.allow_transfer) {
      return reject(
        "TRANSFER_NOT_ALLOWED",
        "The policy of the license does not allow transfers: set its allow_transfer, or move the license to another policy.",
        { detail: "allow_transfer" }
      )
    }
    if (ownerChanges && isExhausted(license, view.limits)) {
      return reject(
        "TRANSFER_LIMIT_REACHED",
        "The license was transferred as often as it may be: raise max_transfers of the license or its policy to transfer it again.",
        { detail: String(view.limits.max_transfers) }
      )
    }
    const reset = command.reset_devices === true ? resetAll(view, command.release_borrowed === true, now) : noReset
    const isTransferred = ownerChanges || reset.count > 0 || reset.released > 0
    if (!isTransferred && newKey === undefined) return accept({}, snapshot)
    const { license: licenseChanges, ...devices } = reset.changes
    return accept(
      {
        ...devices,
        license: {
          ...licenseChanges,
          ...(ownerChanges && { ...owner, times_transferred: license.times_transferred + 1 }),
          ...newKey,
          updated_at: now
        },
        entitlement: isTransferred,
        events: [
          ...(isTransferred ? [transferredEvent(license, ownerChanges ? changes : undefined, reset)] : []),
          ...(newKey === undefined ? [] : [keyRotatedEvent(license, newKey)])
        ]
      },
      snapshot
    )
  }
}

const transferredEvent = (
  { id }: LicenseRecord,
  changes: ReturnType<typeof changesOf> | undefined,
  { count, released }: Reset
) =>
  licenseEvent("license.transferred", id, {
    ...(changes && { changes }),
    ...(count > 0 && { devices_reset: count }),
    ...(released > 0 && { seats_released: released })
  })

const refuseUnknownCustomer = (
  view: LicenseView,
  { customer_id }: TransferCommand
): Refused<"NOT_FOUND"> | undefined =>
  customer_id === undefined || customer_id === "" || view.link("customer", customer_id) !== undefined
    ? undefined
    : reject("NOT_FOUND", unknownId("customer", customer_id), { detail: "customer_id" })

/** Absent fields keep their values, or become the new customer's. An empty customer_id clears the link. */
const ownerAfter = (view: LicenseView, command: TransferCommand) => {
  const { license } = view
  const customer_id = command.customer_id === undefined ? license.customer_id : command.customer_id || undefined
  const customer =
    customer_id === undefined || customer_id === license.customer_id ? undefined : view.link("customer", customer_id)
  const kept = customer ?? { email: license.customer_email, name: license.customer_name }
  return {
    customer_id,
    customer_email: command.customer_email ?? kept.email,
    customer_name: command.customer_name ?? kept.name
  }
}

/** 0 = unlimited. */
const isExhausted = ({ times_transferred }: LicenseRecord, { max_transfers }: Limits): boolean =>
  max_transfers > 0 && times_transferred >= max_transfers

interface Reset {
  readonly count: number
  /** Borrowed seats that end. */
  readonly released: number
  readonly changes: Changes
}

const noReset: Reset = { count: 0, released: 0, changes: {} }

/** Blacklisted devices stay blacklisted. */
const resetAll = (view: LicenseView, releases: boolean, now: number): Reset => {
  const devices = Array.from(view.devices).filter(isResettable)
  const borrowed = Array.from(view.liveLeases).filter((lease) => borrowedUntil(lease, now) !== undefined)
  const otherCount = view.otherResettable
  return {
    count: devices.length + otherCount,
    released: releases ? borrowed.length : 0,
    changes: {
      license: { active_device_count: 0 },
      devices: devices.map((device) => resetDevice(device, now)),
      ...(otherCount > 0 && { othersReset: true }),
      leases: releases ? endAll(view.liveLeases, now) : endUnborrowed(view.liveLeases, "ended", now)
    }
  }
}
