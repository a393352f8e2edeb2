/** Days of the reader's zone. They stay the same while a screen is open. */
import { now } from "../service/Service.ts"

export const dayMillis = 86_400_000

export const startOfToday = (): number => {
  const today = new Date(now())
  return new Date(today.getFullYear(), today.getMonth(), today.getDate()).getTime()
}
