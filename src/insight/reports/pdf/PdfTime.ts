/** Formats hours and days in the report's time zone, and builds the chart over time. */
import { DateTime, Option } from "effect"
import type { Json } from "../../../contract/api/CanonicalJson.ts"
import { dayMillis, hourMillis, parseTimestamp } from "../../../contract/api/Timestamp.ts"
import type { Chart } from "./PdfModel.ts"

export interface ZonedTime {
  readonly name: string
  text(instant: number): string
}

const stepMillis = { hour: hourMillis, day: dayMillis } as const

/** UTC replaces a zone that the database knows but this platform does not. */
export const zonedTime = (name: string, hours: boolean): ZonedTime => {
  const zone = DateTime.zoneMakeNamed(name)
  const format = (instant: number): string => {
    const utc = DateTime.makeUnsafe(instant)
    const local = Option.isSome(zone) ? DateTime.setZone(utc, zone.value) : utc
    const { day, hour, minute, month, year } = DateTime.toParts(local)
    const [date, time] = [
      [year, month, day],
      [hour, minute]
    ].map((numbers) => numbers.map((number) => String(number).padStart(2, "0")))
    return hours ? `${date!.join("-")} ${time!.join(":")}` : date!.join("-")
  }
  return Option.isSome(zone) ? { name, text: format } : { name: "UTC", text: (instant) => `${format(instant)} UTC` }
}

export const timeOf = (value: Json | undefined): number =>
  typeof value === "string" ? (parseTimestamp(value) ?? 0) : 0

export const chartOf = (
  {
    buckets,
    report
  }: { readonly buckets: ReadonlyMap<number, bigint>; readonly report: { readonly [name: string]: Json } },
  unit: keyof typeof stepMillis,
  zone: ZonedTime
): { readonly chart?: Chart } => {
  if (buckets.size < 2) return {}
  const step = stepMillis[unit]
  const starts = [...buckets.keys()]
  const first = starts.reduce((least, start) => Math.min(least, start))
  const last = starts.reduce((most, start) => Math.max(most, start))
  const { from, to } = (report["period"] ?? {}) as { readonly from?: string; readonly to?: string }
  const begin = from === undefined ? first : Math.min(first, timeOf(from))
  const end = Math.max(last + step, Math.min(timeOf(to), begin + 100 * 366 * stepMillis.day))
  return {
    chart: {
      title: `Consumed by ${unit} (${zone.name})`,
      from: begin,
      to: end,
      step,
      bars: buckets,
      // Daylight saving time moves the start of a day; its middle is always in the right day.
      label: (instant) => zone.text(unit === "day" ? instant + step / 2 : instant)
    }
  }
}
