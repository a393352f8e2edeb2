/** Numbers, instants and names as a person reads them, in the reader's zone. */
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" })
const instant = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" })
const utc = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long", timeZone: "UTC" })
const whole = new Intl.NumberFormat()

export const dayOf = (millis: number) => day.format(millis)
export const instantOf = (millis: number) => instant.format(millis)
export const utcOf = (millis: number) => utc.format(millis)
export const countOf = (count: number) => whole.format(count)
export const wordsOf = (name: string) => name.replaceAll(/[_.]/g, " ")

/** 0 is no limit in most limits of the contract. */
export const limitOf = (limit: number) => (limit === 0 ? "no limit" : countOf(limit))

const two = (part: number) => String(part).padStart(2, "0")

/** A day as `<input type="date">` has it. */
export const inputDayOf = (millis: number): string => {
  const date = new Date(millis)
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

/** An instant as `<input type="datetime-local">` has it. */
export const inputInstantOf = (millis: number): string => {
  const date = new Date(millis)
  return `${inputDayOf(millis)}T${two(date.getHours())}:${two(date.getMinutes())}`
}

/** The first millisecond of that day, in the reader's zone. */
export const startOfInputDay = (text: string): number => Date.parse(`${text}T00:00:00`)

/** The last second of that day, in the reader's zone. */
export const endOfInputDay = (text: string): number => Date.parse(`${text}T23:59:59`)

/** A count and its limit. */
export const countAndLimitOf = (count: number, limit: number) =>
  `${countOf(count)}${limit === 0 ? ", no limit" : ` of ${countOf(limit)}`}`
