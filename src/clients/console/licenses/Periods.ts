/** Periods in which licenses or their maintenance expire, as filters of their list. */
import { Schema } from "effect"
import { startOfDay } from "../parts/Days.ts"

export const Period = Schema.Literals(["this_month", "next_30_days", "last_30_days"])
export type Period = typeof Period.Type

/** The limits of a period: whole days or months. */
export const periodOf = (period: Period): { readonly expires_after: number; readonly expires_before: number } => {
  const start = startOfDay()
  const today = new Date(start)
  switch (period) {
    case "this_month":
      return {
        expires_after: new Date(today.getFullYear(), today.getMonth(), 1).getTime(),
        expires_before: new Date(today.getFullYear(), today.getMonth() + 1, 1).getTime()
      }
    case "next_30_days":
      return { expires_after: start, expires_before: startOfDay(31) }
    case "last_30_days":
      return { expires_after: startOfDay(-30), expires_before: startOfDay(1) }
  }
}

/** The same for the end of the maintenance. */
export const maintenanceIn = (period: Period) => {
  const { expires_after, expires_before } = periodOf(period)
  return { maintenance_expires_after: expires_after, maintenance_expires_before: expires_before }
}
