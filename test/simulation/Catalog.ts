/** How policies, features and versions came from what they were to what they are, told by their events alone. */
import { isDeepStrictEqual } from "node:util"
import { parseTimestamp } from "../../src/api/Timestamp.ts"
import { payloadFields } from "../../src/catalog/policies/Policy.ts"
import type { Era } from "./Episode.ts"
import type { Policy, Surroundings } from "./model/Model.ts"
import { replaced } from "./model/Model.ts"
import type { Stored, StoredEvent } from "./Rows.ts"
import type { Step } from "./Story.ts"
import { isOfLicense, type Order } from "./Verbs.ts"
import { told, violation } from "./Violation.ts"
import { product } from "./World.ts"

type Changes = { readonly [field: string]: { readonly old: unknown; readonly new: unknown } }

const editPolicy = (policy: Policy, changes: Changes): Policy => {
  const edited: Record<string, unknown> = { ...policy }
  for (const [field, { old, new: next }] of Object.entries(changes)) {
    if (edited[field] !== old)
      violation(`an event says that ${field} of ${policy.id} was ${old}, it was ${edited[field]}`)
    edited[field] = next
  }
  const isShown = payloadFields.some((field) => field in changes)
  return { ...(edited as unknown as Policy), version: policy.version + (isShown ? 1 : 0) }
}

const without = <K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> => {
  const left = new Map(map)
  if (!left.delete(key)) violation(`an event tells of the end of ${String(key)}, which there was not`)
  return left
}

/** The surroundings after an event; undefined where it is none of theirs. */
export const surroundingsAfter = (around: Surroundings, event: StoredEvent): Surroundings | undefined => {
  const { metadata, resource, type } = event
  const said = (member: string) => String(metadata[member])
  const changes = (metadata["changes"] ?? {}) as Changes
  switch (type) {
    case "policy.updated": {
      const policy = around.policies.get(resource)!
      return { ...around, policies: replaced(around.policies, resource, editPolicy(policy, changes)) }
    }
    case "feature.created":
      return { ...around, features: replaced(around.features, resource, said("code")) }
    case "feature.updated": {
      const code = changes["code"] === undefined ? around.features.get(resource)! : String(changes["code"].new)
      return { ...around, features: replaced(around.features, resource, code) }
    }
    case "feature.deleted":
      return { ...around, features: without(around.features, resource) }
    case "product_version.created":
      if (said("product_id") !== product) violation("a version of another product was made")
      return { ...around, versions: replaced(around.versions, said("version"), parseTimestamp(said("released_at"))!) }
    case "product_version.deleted":
      return { ...around, versions: without(around.versions, said("version")) }
    default:
      return undefined
  }
}

/** The rows are what the events tell. */
export const checkSurroundings = ({ around }: Stored, eras: ReadonlyArray<Era>): void => {
  const last = eras.at(-1)!.around
  if (!isDeepStrictEqual(around, last)) violation(`the catalog is ${told(around)}, its events say ${told(last)}`)
}

/** What was asked of the catalog is done once if accepted, and not if refused. */
export const checkCatalog = ({ orders, outcomes }: Step, { events }: Stored, eras: ReadonlyArray<Era>): void => {
  for (const order of orders.filter((order) => !isOfLicense(order))) {
    const { request, verb } = order
    const { kind } = outcomes.get(request)!
    const left = events.filter((event) => event.request === request).length
    const isMade = /^(create|delete)/.test(verb)
    if (left > 1) violation(`${request} (${verb}) was done twice`)
    if (left > 0 && kind === "refused") violation(`${request} (${verb}) was refused and done`)
    if (kind === "told" && (isMade ? left === 0 : !eras.some(({ around }) => holds(order, around))))
      violation(`${request} (${verb}) is lost`)
  }
}

/** Whether what an edit asked for is so; one that changes nothing leaves no event. */
const holds = ({ command, subject, verb }: Order, { features, policies }: Surroundings): boolean => {
  if (verb === "edit feature") return features.get(subject) === (command as { readonly code: string }).code
  const policy = policies.get(subject) as Readonly<Record<string, unknown>> | undefined
  return (
    verb !== "edit policy" || Object.entries(command as object).every(([field, value]) => policy?.[field] === value)
  )
}
