/** Numbers, instants and names as a person reads them, in the reader's zone. */
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" })
const instant = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" })
const zoned = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" })
const utc = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long", timeZone: "UTC" })
const utcDay = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" })
const whole = new Intl.NumberFormat()

export const dayOf = (millis: number) => day.format(millis)
export const instantOf = (millis: number) => instant.format(millis)
/** In the reader's zone, which is named, and in UTC. */
export const zonedOf = (millis: number) => `${zoned.format(millis)} · ${utc.format(millis)}`
export const utcDayOf = (millis: number) => utcDay.format(millis)
export const countOf = (count: number) => whole.format(count)

export interface Total {
  readonly total?: number
  readonly total_is_capped?: boolean
}

/** A list's total, which the service counts up to a limit. */
export const cappedOf = ({ total = 0, total_is_capped }: Total) => `${countOf(total)}${total_is_capped ? "+" : ""}`

const acronyms = /\b(?:api|json|oidc)\b/g
export const wordsOf = (name: string) =>
  name.replaceAll(/[_.]/g, " ").replaceAll(acronyms, (letters) => letters.toUpperCase())
/** The same where it stands alone, as in a table. */
export const sentenceOf = (name: string) => capital(wordsOf(name))

/** What happened, as in “Floating seat checked out”. */
export const nameOfEvent = (type: string): string =>
  sentenceOf(type.replace(/^lease/, "floating seat").replace(/^portal/, "customer"))

export const capital = (words: string) => words.charAt(0).toUpperCase() + words.slice(1)

/** In most limits of the contract 0 means unlimited. */
export const limitOf = (limit: number) => (limit === 0 ? "no limit" : countOf(limit))

export const counted = (count: number, unit: string) => `${countOf(count)} ${unit}${count === 1 ? "" : "s"}`

/** Shows whole multiples of 365 days as years. */
export const daysOf = (days: number) =>
  days > 0 && days % 365 === 0 ? counted(days / 365, "year") : counted(days, "day")

/** A duration in its largest whole unit. */
export const minutesInWords = (minutes: number): string => {
  const [size, unit] =
    minutes > 0 && minutes % 1_440 === 0
      ? [1_440, "day"]
      : minutes > 0 && minutes % 60 === 0
        ? [60, "hour"]
        : [1, "minute"]
  return counted(minutes / size, unit)
}

/** The reader's time zone, in which days begin and end. */
export const readerZone = new Intl.DateTimeFormat().resolvedOptions().timeZone

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

/** The first millisecond of that day, in the reader's zone: also where clocks skip midnight. */
export const startOfInputDay = (text: string): number => Date.parse(`${text}T00:00:00`)

/** The first millisecond after that day, in the reader's zone: also where clocks go back in its last hour. */
export const afterInputDay = (text: string): number => {
  const date = new Date(startOfInputDay(text))
  date.setDate(date.getDate() + 1)
  return date.setHours(0, 0, 0, 0)
}

/** The last second of that day, in the reader's zone. */
export const endOfInputDay = (text: string): number => afterInputDay(text) - 1_000
