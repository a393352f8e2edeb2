/** What happens to the licenses of an order or subscription together with it. */
import { Effect } from "effect"
import { isRefusal, refuse } from "../../../contract/api/Failure.ts"
import type { Keyset } from "../../../contract/api/Paging.ts"
import type { License } from "../../../licensing/model/License.ts"
import { choice } from "../parts/Fields.tsx"
import { isFinal } from "../service/Failures.ts"
import { send } from "../service/Service.ts"

/** The record that the licenses are linked to. */
export type Origin = { readonly order_id: string } | { readonly subscription_id: string }

const outcomes = [
  { id: "keep", name: "Stay as they are" },
  { id: "suspend", name: "Suspend" },
  { id: "revoke", name: "Revoke" }
] as const

export type Outcome = (typeof outcomes)[number]["id"] | "reinstate"

const effects = {
  required: true,
  hint: "Both stop them at once: suspended ones can be reinstated, revoked ones never work again."
} as const

/** What happens to licenses when a record ends. */
export const endingField = choice<Outcome>("Its licenses", outcomes, effects)

/** What happens to licenses when a record ends or continues. */
export const outcomeField = choice<Outcome>(
  "Its licenses",
  [...outcomes, { id: "reinstate", name: "Reinstate" }],
  effects
)

export interface Statused {
  readonly status: string
}

/**
 * One change of a record and its licenses. What is sent again because a part of it failed belongs to the same change: all of it is
 * taken back together.
 */
export interface Attempt<A> {
  /** The record before it. */
  readonly before: A
  readonly status: string
  readonly outcome: Outcome
  /** The licenses that it changed, as they were then, by id. */
  readonly changed: Map<string, License>
  /** Licenses as they were before a request whose response was lost. */
  readonly unsure: Map<string, License>
  /** A part of it may have been done, and the rest can be sent again. */
  isOpen: boolean
}

/** Goes on with the last attempt if that wanted the same and is open. */
export const attemptAfter = <A extends Statused>(
  last: Attempt<A> | undefined,
  current: A,
  status: string,
  outcome: Outcome
): Attempt<A> => {
  const isSame = last?.status === status && (last.outcome === outcome || last.changed.size === 0)
  if (last?.isOpen === true && isSame && current.status === status) return { ...last, outcome }
  return { before: current, status, outcome, changed: new Map(), unsure: new Map(), isOpen: false }
}

const applies = ({ status }: License, outcome: Outcome) => {
  if (status === "revoked" || outcome === "keep") return false
  return outcome === "reinstate" ? status === "suspended" : outcome === "revoke" || status !== "suspended"
}

const operations = { suspend: "suspendLicense", revoke: "revokeLicense", reinstate: "reinstateLicense" } as const

/** Licenses that one action changes; no order has nearly so many. */
const licensesMax = 1_000

const licensesOf = Effect.fnUntraced(function* (origin: Origin) {
  const licenses: Array<License> = []
  let cursor: Keyset | undefined
  do {
    const page = yield* send("listLicenses", {
      query: { ...origin, limit: 200, ...(cursor === undefined ? {} : { cursor }) }
    })
    licenses.push(...page.items)
    cursor = page.next
    if (licenses.length > licensesMax)
      return yield* refuse(
        "CONFLICT",
        `More than ${licensesMax} licenses are linked: let them stay as they are here, and change them in their list.`,
        "licenses"
      )
  } while (cursor !== undefined)
  return licenses
})

export interface Unchanged {
  readonly license: License
  readonly message: string
}

/** What a change did. */
export interface Changed<A> {
  readonly attempt: Attempt<A>
  /** The record afterwards. */
  readonly record: A
  /** The licenses that could not be changed; the same change can be sent again. */
  readonly unchanged: ReadonlyArray<Unchanged>
}

/** Changes a record, then its licenses. */
export const changeWithLicenses = Effect.fnUntraced(function* <A, E, R>(
  attempt: Attempt<A>,
  origin: Origin,
  change: Effect.Effect<A, E, R>
) {
  const { outcome, unsure } = attempt
  const licenses = outcome === "keep" ? [] : yield* licensesOf(origin)
  attempt.isOpen = true
  const record = yield* Effect.tapError(change, (error) => Effect.sync(() => (attempt.isOpen = !isFinal(error))))
  const unchanged: Array<Unchanged> = []
  for (const license of licenses) {
    if (outcome === "keep" || !(applies(license, outcome) || unsure.has(license.id))) continue
    yield* changeLicense(license.id, outcome, attempt).pipe(
      Effect.catch((error) =>
        Effect.sync(() =>
          unchanged.push({ license, message: isRefusal(error) ? error.message : "The service cannot be reached." })
        )
      )
    )
  }
  attempt.isOpen = unchanged.length > 0
  const result: Changed<A> = { attempt, record, unchanged }
  return result
})

/** Changes a license, unless somebody else has done the same since it was listed, which an undo of this change must not revert. */
const changeLicense = Effect.fnUntraced(function* (
  id: string,
  outcome: Exclude<Outcome, "keep">,
  { changed, unsure }: Attempt<unknown>
) {
  const current = yield* send("getLicense", { params: { id } })
  const earlier = unsure.get(id)
  unsure.delete(id)
  if (!applies(current, outcome)) {
    // One change since: the one whose response was lost.
    const isOwn = earlier !== undefined && current.entitlement_version === earlier.entitlement_version + 1
    if (isOwn) changed.set(id, current)
    return
  }
  unsure.set(id, current)
  const settled = Effect.sync(() => unsure.delete(id))
  const after = yield* send(operations[outcome], { params: { id } }).pipe(
    Effect.tap(() => settled),
    Effect.tapError((error) => (isFinal(error) ? settled : Effect.void))
  )
  changed.set(id, after)
})

/** Takes back what a change did to a license. False: it stays as it is, because somebody has changed it since. */
export const takeBack = Effect.fnUntraced(function* (
  { entitlement_version, id }: License,
  outcome: "suspend" | "reinstate"
) {
  const back = outcome === "suspend" ? "reinstate" : "suspend"
  const current = yield* send("getLicense", { params: { id } })
  // An earlier attempt did it, and its response was lost.
  if (!applies(current, back)) return current.status !== "revoked"
  if (current.entitlement_version !== entitlement_version) return false
  yield* send(operations[back], { params: { id } })
  return true
})
