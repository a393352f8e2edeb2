/** Days of the reader's zone. They stay the same while a screen is open. */
import { now } from "../service/Service.ts"

/** The beginning of a day so many days and months from today. */
export const startOfDay = (days = 0, months = 0): number => {
  const today = new Date(now())
  return new Date(today.getFullYear(), today.getMonth() + months, today.getDate() + days).getTime()
}

/** Periods until now, by their names in addresses. */
const periods = { last_30_days: [-30], last_90_days: [-90], last_12_months: [0, -12] } as const

/** The beginning of a period. */
export const beginOf = (period: keyof typeof periods): number => startOfDay(...periods[period])
