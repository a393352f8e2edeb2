/** The limits of a license, in words. */
import type { License } from "../../../licensing/model/License.ts"
import { countOf, daysOf, limitOf } from "../parts/Format.ts"

type Name = keyof License["limits"]

export interface LimitRow {
  readonly title: string
  readonly name: Name
  /** How much of it is used. */
  readonly used?: number
  /** What else there is to say of its use. */
  readonly note?: string
  readonly words: (limit: number | undefined) => string
}

const seatsOf = (limit = 0) => (limit === 0 ? "off" : countOf(limit))
const instancesOf = (limit: number | undefined) => (limit === undefined ? "counted as devices" : limitOf(limit))
const plainOf = (limit = 0) => limitOf(limit)

const heldWords = (held: number) =>
  `${countOf(held)} held for ${held === 1 ? "a device" : "devices"} that may work offline`

/** Containers with a limit of their own do not count against that of devices, though they are devices. */
const usedDevices = ({ active_device_count: used, limits }: License, held: number) => {
  const isApart = limits.max_container_instances !== undefined
  const notes = [isApart && `${countOf(used)} in use, with containers`, held > 0 && heldWords(held)].filter(Boolean)
  return { ...(isApart ? {} : { used: used + held }), ...(notes.length === 0 ? {} : { note: notes.join(", ") }) }
}

/** `held`: the slots of devices that are not active. */
export const limitRows = (license: License, held = 0): ReadonlyArray<LimitRow> => [
  { title: "Devices", name: "max_activations", ...usedDevices(license, held), words: plainOf },
  { title: "Floating seats", name: "max_floating_users", words: seatsOf },
  { title: "Container instances", name: "max_container_instances", words: instancesOf },
  { title: "Transfers", name: "max_transfers", used: license.times_transferred, words: plainOf },
  { title: "Offline", name: "offline_grace_days", words: (days = 0) => daysOf(days) },
  {
    title: "Removed by customers",
    name: "self_deactivations_per_month",
    words: (devices = 0) => `${countOf(devices)} in 30 days`
  }
]
