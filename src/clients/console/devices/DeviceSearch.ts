/** What the address of the list of devices names. */
import { Schema } from "effect"
import { DeviceBindingKind, DeviceStatus } from "../../../licensing/model/Device.ts"
import { startOfDay } from "../parts/Days.ts"

const text = Schema.optionalKey(Schema.String)

export const Seen = Schema.Literals(["today", "last_30_days", "not_for_30_days", "not_for_90_days"])

export const DeviceSearch = Schema.Struct({
  hostname: text,
  product_id: text,
  status: Schema.optionalKey(DeviceStatus),
  binding_kind: Schema.optionalKey(DeviceBindingKind),
  seen: Schema.optionalKey(Seen),
  sort: Schema.optionalKey(Schema.Literals(["created_at", "-created_at"])),
  cursor: text
})
export type DeviceSearch = typeof DeviceSearch.Type

const periods = {
  today: () => ({ last_seen_after: startOfDay() }),
  last_30_days: () => ({ last_seen_after: startOfDay(-30) }),
  not_for_30_days: () => ({ last_seen_before: startOfDay(-30) }),
  not_for_90_days: () => ({ last_seen_before: startOfDay(-90) })
} as const satisfies Record<typeof Seen.Type, unknown>

/** The filters and the sort as the API takes them. */
export const filtersOf = ({ cursor: _, seen, ...filters }: DeviceSearch) => ({
  ...filters,
  ...(seen === undefined ? {} : periods[seen]())
})
