/** The reader's time zone as the service takes it, in which days and weeks begin. */
import { readerZone as reader } from "../parts/Format.ts"

/** The service knows zones by their names, not fixed offsets. */
export const zone = /^[A-Za-z][\w+-]*(\/[\w+-]+)*$/.test(reader) ? reader : "UTC"

/** Midnight of the day so many days before another. */
const dayBefore = (millis: number, days: number): number => {
  const date = new Date(millis)
  return zone === reader
    ? new Date(date.getFullYear(), date.getMonth(), date.getDate() - days).getTime()
    : Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() - days)
}

/** Midnight of the Monday so many weeks before this week's. */
export const mondayBefore = (millis: number, weeks: number): number => {
  const date = new Date(millis)
  const weekday = zone === reader ? date.getDay() : date.getUTCDay()
  return dayBefore(millis, ((weekday + 6) % 7) + 7 * weeks)
}

/** The beginnings of the days of a period, the earliest first; at most so many. */
export const daysOf = (from: number, to: number, max: number): ReadonlyArray<number> => {
  const days: Array<number> = []
  for (let day = dayBefore(from, 0); day < to && days.length < max; day = dayBefore(day, -1)) days.push(day)
  return days
}
