/** Replays policies, features and versions from their events. */
import { isDeepStrictEqual } from "node:util"
import { canonicalize } from "../../../src/contract/api/CanonicalJson.ts"
import { formatTimestamp, parseTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { payloadFields } from "../../../src/vendor/policies/Policy.ts"
import type { Catalog, Policy } from "../model/Model.ts"
import { intervalEnd, replaced } from "../model/Model.ts"
import type { PolicyFeature } from "../model/Moves.ts"
import type { Subscription } from "../model/Periods.ts"
import { product } from "../requests/InitialData.ts"
import { type Call, isOfLicense, type PolicyFeatureCommand, type SubscriptionCommand } from "../requests/Operations.ts"
import type { Step } from "../Transcript.ts"
import type { CatalogPeriod } from "./LicenseStep.ts"
import type { Stored, StoredEvent } from "./Rows.ts"
import { show, violation } from "./Violation.ts"

type Changes = { readonly [field: string]: { readonly old: unknown; readonly new: unknown } }

/** Devices are not due before this instant because of an edit. */
const floorAfter = (before: Policy, after: Policy, now: number): number | null => {
  const isSwitchedOn = after.require_heartbeat && !before.require_heartbeat
  const isProlonged = after.grace_period_days > before.grace_period_days
  if (!isSwitchedOn && !isProlonged) return before.floor
  const longest = isSwitchedOn ? 0 : intervalEnd(before, now)
  return Math.max(before.floor ?? 0, intervalEnd(after, now), longest)
}

/** What an event says of a policy's feature. */
const saidFeature = (said: unknown): PolicyFeature => {
  const { enabled, expires_after_days, expires_with_license, max_consumptions, metadata, ...periods } = said as {
    readonly [member: string]: never
  }
  return {
    enabled: enabled!,
    max: max_consumptions ?? null,
    days: expires_after_days ?? null,
    follows: expires_with_license === true,
    period: periods["reset_period"] ?? null,
    anchor: periods["reset_anchor"] ?? null,
    rollover: periods["rollover_max"] ?? null,
    beyond: periods["overage_max"] ?? null,
    metadata: canonicalize(metadata!)
  }
}

const editFeatures = (
  { features, id: policy }: Policy,
  changes: Changes,
  codes: Catalog["features"]
): Policy["features"] => {
  const edited = new Map(features)
  for (const [field, { old, new: next }] of Object.entries(changes)) {
    if (!field.startsWith("features.")) continue
    const [id] = Array.from(codes).find(([, code]) => `features.${code}` === field) ?? []
    if (id === undefined) throw violation(`an event names ${field} of ${policy}, which is no feature`)
    const was = edited.get(id)
    if (!isDeepStrictEqual(was, old === null ? undefined : saidFeature(old)))
      violation(`an event says that ${field} of ${policy} was ${show(old)}, it was ${show(was)}`)
    if (next === null) edited.delete(id)
    else edited.set(id, saidFeature(next))
  }
  return edited
}

const editPolicy = (policy: Policy, changes: Changes, floorOf: (after: Policy) => number | null): Policy => {
  const edited: Record<string, unknown> = { ...policy }
  for (const [field, { old, new: next }] of Object.entries(changes)) {
    if (field.startsWith("features.")) continue
    if (edited[field] !== old)
      violation(`an event says that ${field} of ${policy.id} was ${old}, it was ${edited[field]}`)
    edited[field] = next
  }
  const isShown = payloadFields.some((field) => field in changes)
  const after = edited as unknown as Policy
  return { ...after, floor: floorOf(after), version: policy.version + (isShown ? 1 : 0) }
}

const editSubscription = (subscription: Subscription, changes: Changes): Subscription => {
  const { end, id, start } = subscription
  const edited = (was: number, change: Changes[string] | undefined): number => {
    if (change === undefined) return was
    if (change.old !== formatTimestamp(was)) violation(`an event says that a date of ${id} was ${show(change.old)}`)
    return parseTimestamp(String(change.new))!
  }
  return {
    id,
    start: edited(start, changes["current_period_start"]),
    end: edited(end, changes["current_period_end"])
  }
}

const without = <K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> => {
  const left = new Map(map)
  if (!left.delete(key)) violation(`an event tells of the end of ${String(key)}, which there was not`)
  return left
}

/** The catalog after an event; undefined for events of other resources. */
export const catalogAfter = (
  catalog: Catalog,
  event: StoredEvent,
  stored: Catalog,
  nows: ReadonlyArray<number>
): Catalog | undefined => {
  const { metadata, resource, type } = event
  const said = (member: string) => String(metadata[member])
  const changes = (metadata["changes"] ?? {}) as Changes
  switch (type) {
    case "policy.updated": {
      const policy = catalog.policies.get(resource)!
      // Time may have passed between the edit and its event.
      const at = (after: Policy) =>
        nows.find((now) => floorAfter(policy, after, now) === stored.policies.get(resource)!.floor) ?? event.at
      const edited = editPolicy(policy, changes, (after) => floorAfter(policy, after, at(after)))
      const features = editFeatures(policy, changes, catalog.features)
      return { ...catalog, policies: replaced(catalog.policies, resource, { ...edited, features }) }
    }
    case "feature.created":
      return { ...catalog, features: replaced(catalog.features, resource, said("code")) }
    case "feature.updated": {
      const code = changes["code"] === undefined ? catalog.features.get(resource)! : String(changes["code"].new)
      return { ...catalog, features: replaced(catalog.features, resource, code) }
    }
    case "feature.deleted":
      return { ...catalog, features: without(catalog.features, resource) }
    case "product_version.created":
      if (said("product_id") !== product) violation("a version of another product was made")
      return { ...catalog, versions: replaced(catalog.versions, said("version"), parseTimestamp(said("released_at"))!) }
    case "subscription.updated": {
      const edited = editSubscription(catalog.subscriptions.get(resource)!, changes)
      return { ...catalog, subscriptions: replaced(catalog.subscriptions, resource, edited) }
    }
    case "product_version.deleted":
      return { ...catalog, versions: without(catalog.versions, said("version")) }
    default:
      return undefined
  }
}

/** The rows must equal the result of the events. */
export const checkCatalogRows = ({ catalog }: Stored, periods: ReadonlyArray<CatalogPeriod>): void => {
  const last = periods.at(-1)!.catalog
  if (!isDeepStrictEqual(catalog, last)) violation(`the catalog is ${show(catalog)}, its events say ${show(last)}`)
}

/** An accepted catalog request is executed once, a refused one not at all. */
export const checkCatalogRequests = (
  { calls, outcomes }: Step,
  { events }: Stored,
  periods: ReadonlyArray<CatalogPeriod>
): void => {
  for (const call of calls.filter((call) => !isOfLicense(call))) {
    const { request, operation } = call
    const { kind } = outcomes.get(request)!
    const left = events.filter((event) => event.request === request).length
    const isMade = /^(create|delete)/.test(operation)
    if (left > 1) violation(`${request} (${operation}) was done twice`)
    if (left > 0 && kind === "refused") violation(`${request} (${operation}) was refused and done`)
    if (kind === "accepted" && (isMade ? left === 0 : !periods.some(({ catalog }) => holds(call, catalog))))
      violation(`${request} (${operation}) is lost`)
  }
}

/** Whether the catalog is as an edit requested; an edit without a change leaves no event. */
const holds = ({ command, subject, operation }: Call, { features, policies, subscriptions }: Catalog): boolean => {
  if (operation === "edit subscription") {
    const { current_period_end: end, current_period_start: start } = command as SubscriptionCommand
    return isDeepStrictEqual(subscriptions.get(subject), { id: subject, start, end })
  }
  if (operation === "edit feature") return features.get(subject) === (command as { readonly code: string }).code
  if (operation === "set policy feature") return hasFeature(policies.get(subject), command as PolicyFeatureCommand)
  const policy = policies.get(subject) as Readonly<Record<string, unknown>> | undefined
  return (
    operation !== "edit policy" ||
    Object.entries(command as object).every(([field, value]) => policy?.[field] === value)
  )
}

const hasFeature = (policy: Policy | undefined, { feature_id, ...given }: PolicyFeatureCommand): boolean =>
  isDeepStrictEqual(policy?.features.get(feature_id), saidFeature({ enabled: true, metadata: {}, ...given }))
