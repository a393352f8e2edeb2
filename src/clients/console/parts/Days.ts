/** Days of the reader's zone. They stay the same while a screen is open. */
import { now } from "../service/Service.ts"

/** The beginning of a day so many days from today. */
export const startOfDay = (days = 0): number => {
  const today = new Date(now())
  return new Date(today.getFullYear(), today.getMonth(), today.getDate() + days).getTime()
}
