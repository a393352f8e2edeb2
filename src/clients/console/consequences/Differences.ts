/** What a change does to a license, as the service has previewed it, in words. */
import type { LicenseFeature } from "../../../licensing/model/LicenseFeature.ts"
import type { Success } from "../../client/Client.ts"
import { countOf, dayOf, sentenceOf } from "../parts/Format.ts"
import { limitRows } from "./LimitRows.ts"

export type Preview = Success<"previewLicenseChange">
type State = Preview["before"]

export interface Difference {
  readonly name: string
  readonly before: string
  readonly after: string
  /** What the reader should know of it. */
  readonly note?: string
}

type Line = Readonly<Record<string, string>>

const dayText = (instant: number | undefined) => (instant === undefined ? "not set" : dayOf(instant))

const owner = ({ license }: State): Line => ({
  Customer: license.customer_name || "not set",
  "E-mail": license.customer_email || "not set",
  Transferred: ["never", "once"][license.times_transferred] ?? `${countOf(license.times_transferred)} times`
})

const dates = ({ license }: State): Line => ({
  Status: sentenceOf(license.status),
  Expires: dayText(license.expires_at),
  "Updates until": dayText(license.maintenance_expires_at)
})

const limits = ({ license }: State): Line =>
  Object.fromEntries(limitRows(license).map(({ name, title, words }) => [title, words(license.limits[name])]))

const inUse = ({ license, live_leases }: State): Line => ({
  "Devices in use": countOf(license.active_device_count),
  "Seats in use": countOf(live_leases)
})

const periods: Readonly<Record<string, string>> = {
  day: "a day",
  week: "a week",
  month: "a month",
  year: "a year",
  subscription: "a period"
}

const quotaText = ({ enabled, expires_at, max_consumptions, reset_period }: LicenseFeature): string =>
  [
    enabled ? "" : "off",
    max_consumptions === undefined
      ? enabled
        ? "included"
        : ""
      : `${countOf(max_consumptions)}${reset_period === undefined ? "" : ` ${periods[reset_period]}`}`,
    expires_at === undefined ? "" : `until ${dayOf(expires_at)}`
  ]
    .filter((part) => part !== "")
    .join(", ")

const featureTexts = ({ features }: State): Line =>
  Object.fromEntries(features.map((feature) => [feature.feature_name, quotaText(feature)]))

const compare = (before: Line, after: Line, absent = ""): ReadonlyArray<Difference> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .map((name) => ({ name, before: before[name] ?? absent, after: after[name] ?? absent }))
    .filter((line) => line.before !== line.after)

/** What is in use and exceeds the new limit stays. */
const noteOf = (name: string, { license, live_leases }: State): string | undefined => {
  const exceeds = (used: number, limit = 0) => used > limit && (limit > 0 || name === "Floating seats")
  const [used, limit] =
    name === "Devices"
      ? [license.active_device_count, license.limits.max_activations]
      : name === "Floating seats"
        ? [live_leases, license.limits.max_floating_users]
        : [0, 0]
  return exceeds(used, limit) ? `${countOf(used)} in use: they stay until they end` : undefined
}

const usedOf = ({ features }: State): ReadonlyMap<string, number> =>
  new Map(features.map(({ feature_name, total_consumptions }) => [feature_name, total_consumptions]))

export const differencesOf = ({ after, before }: Preview): ReadonlyArray<Difference> => {
  if (after === undefined) return []
  const used = usedOf(before)
  const noted = (line: Difference, note: string | undefined): Difference =>
    note === undefined ? line : { ...line, note }
  return [
    ...compare(owner(before), owner(after)),
    ...compare(dates(before), dates(after)),
    ...compare(limits(before), limits(after)).map((line) => noted(line, noteOf(line.name, after))),
    ...compare(inUse(before), inUse(after)),
    ...compare(featureTexts(before), featureTexts(after), "not included").map((line) => {
      const count = used.get(line.name) ?? 0
      return noted(line, count === 0 ? undefined : `${countOf(count)} used so far`)
    })
  ]
}
