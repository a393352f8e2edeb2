/** The next state of a device for each management operation and current state. */
import type { DeviceStatus } from "./Device.ts"

/** `unchanged` is accepted without an event; `conflict` is refused. */
type Next = "reset" | "blacklisted" | "unchanged" | "conflict"

export const deviceTransitions = {
  reset: {
    active: "reset",
    deactivated: "reset",
    expired: "reset",
    reset: "unchanged",
    blacklisted: "conflict"
  },
  blacklist: {
    active: "blacklisted",
    deactivated: "blacklisted",
    expired: "blacklisted",
    reset: "blacklisted",
    blacklisted: "unchanged"
  },
  unblacklist: {
    active: "conflict",
    deactivated: "conflict",
    expired: "conflict",
    reset: "conflict",
    blacklisted: "reset"
  }
} as const satisfies Record<string, Record<DeviceStatus, Next>>

/** The states that a reset changes. */
export const resettableStatuses = Object.entries(deviceTransitions.reset).flatMap(([from, to]) =>
  to === "reset" ? [from as DeviceStatus] : []
)

export const isResettable = ({ status }: { readonly status: DeviceStatus }): boolean =>
  resettableStatuses.includes(status)
