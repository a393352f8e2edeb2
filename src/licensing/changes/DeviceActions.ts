/** The management operations on one device. Each frees the device's slot and ends its lease. */

import { unknownId } from "../../contract/api/Failure.ts"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { EventType } from "../../ledger/events/EventType.ts"
import type { Device, DeviceStatus } from "../model/Device.ts"
import { deviceTransitions } from "../model/DeviceTransitions.ts"
import type { Changes, DeviceRecord, LicenseView } from "../model/LicenseRecords.ts"
import { accept, type Rule, reject } from "../rules/LicenseCommand.ts"
import { endAll } from "../rules/Lifecycle.ts"
import { borrowedUntil, endUnborrowed } from "../rules/Seats.ts"
import { refuseRevoked } from "./Assignments.ts"

export interface DeviceCommand {
  readonly device_id: string
  /** Whether a reset also ends a borrowed seat. */
  readonly release_borrowed?: boolean | undefined
}

type DeviceCode = "NOT_FOUND" | "LICENSE_STATE_CONFLICT" | "DEVICE_STATE_CONFLICT"

const action = (
  name: keyof typeof deviceTransitions,
  event_type: EventType,
  leaseStatus: "ended" | "blacklisted"
): Rule<DeviceCommand, Device, DeviceCode> => ({
  name: `${name} device`,
  needs: ({ device_id }) => ({ deviceId: device_id }),
  decide: (view, { device_id, release_borrowed: releases = false }, now) => {
    const device = view.deviceById(device_id)
    if (device === undefined) {
      return reject("NOT_FOUND", unknownId("device of the license", device_id), { detail: "device_id" })
    }
    const revoked = refuseRevoked(view, now)
    if (revoked !== undefined) return revoked
    const to = deviceTransitions[name][device.status]
    if (to === "conflict") {
      const why =
        name === "reset" ? "remove it from the blacklist first" : "only a blacklisted device can be unblacklisted"
      return reject("DEVICE_STATE_CONFLICT", `The device is ${device.status}: ${why}.`, { detail: device.status })
    }
    const lease = view.liveLeaseOf(device.id)
    const borrowed_until = borrowedUntil(lease, now)
    const isReleased = releases && borrowed_until !== undefined
    if (to === "unchanged" && !isReleased) return accept({}, presentDevice(device))
    const changed = deviceWithStatus(device, to === "unchanged" ? device.status : to, now)
    return accept(
      {
        ...freeSlot(view, device, now),
        devices: [changed],
        leases: lease === undefined ? [] : isReleased ? endAll([lease], now) : endUnborrowed([lease], leaseStatus, now),
        events: [
          {
            event_type,
            resource_type: "device",
            resource_id: device.id,
            metadata: {
              license_id: view.license.id,
              status: { old: device.status, new: changed.status },
              ...(isReleased ? { released_borrowed: true } : keptFact(borrowed_until))
            }
          }
        ]
      },
      presentDevice(changed)
    )
  }
})

/** Resets a device: it has no slot and no seat until it is activated again. */
export const reset = action("reset", "device.reset", "ended")

/** Blocks a device from every runtime operation. */
export const blacklist = action("blacklist", "device.blacklisted", "blacklisted")

/** Lets a blacklisted device be activated again. */
export const unblacklist = action("unblacklist", "device.unblacklisted", "ended")

const deviceWithStatus = (device: DeviceRecord, status: DeviceStatus, now: number): DeviceRecord => ({
  ...device,
  status,
  holds_slot: false,
  ...(device.slot_held_until === undefined ? undefined : { slot_held_until: undefined }),
  updated_at: now
})

export const resetDevice = (device: DeviceRecord, now: number): DeviceRecord => deviceWithStatus(device, "reset", now)

const freeSlot = ({ license }: LicenseView, device: DeviceRecord, now: number): Changes =>
  device.holds_slot ? { license: { active_device_count: license.active_device_count - 1, updated_at: now } } : {}

/** A borrowed seat stays taken, because its machine may use it without a connection. */
const keptFact = (until: number | undefined) =>
  until === undefined ? undefined : { borrowed_until: formatTimestamp(until) }

const presentDevice =
  (device: DeviceRecord) =>
  ({ license }: LicenseView): Device => {
    const {
      binding_hash: _,
      holds_slot: __,
      activated_at: ___,
      due_at: ____,
      offline_expires_at: _____,
      slot_held_until: ______,
      ...record
    } = device
    const present = Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined))
    return { ...(present as unknown as Device), license_id: license.id }
  }
