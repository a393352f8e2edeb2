/** What happens to the licenses of an order or subscription together with it. */
import { Effect } from "effect"
import { isRefusal, refuse } from "../../api/Failure.ts"
import type { Keyset } from "../../api/Paging.ts"
import type { License } from "../../licenses/model/License.ts"
import { choice } from "../parts/Fields.tsx"
import { send } from "../service/Service.ts"

/** The record that the licenses are linked to. */
export type Origin = { readonly order_id: string } | { readonly subscription_id: string }

const outcomes = [
  { id: "keep", name: "stay as they are" },
  { id: "suspend", name: "are suspended" },
  { id: "revoke", name: "are revoked" }
] as const

export type Outcome = (typeof outcomes)[number]["id"] | "reinstate"

const effects = {
  required: true,
  hint: "Both stop them at once: suspended ones can be reinstated, revoked ones never work again."
} as const

/** What happens to licenses when a record ends. */
export const endingField = choice<Outcome>("Its licenses", outcomes, effects)

/** What happens to licenses when a record ends or goes on. */
export const outcomeField = choice<Outcome>(
  "Its licenses",
  [...outcomes, { id: "reinstate", name: "are reinstated" }],
  effects
)

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
  /** The record afterwards, if it was changed. */
  readonly record: A | undefined
  readonly outcome: Outcome
  readonly changed: ReadonlyArray<License>
  /** The licenses that could not be changed; the same change can be sent again. */
  readonly unchanged: ReadonlyArray<Unchanged>
}

/** Changes a record, then its licenses. */
export const changeWithLicenses = Effect.fnUntraced(function* <A, E, R>(
  record: Effect.Effect<A | undefined, E, R>,
  origin: Origin,
  outcome: Outcome
) {
  const licenses = outcome === "keep" ? [] : yield* licensesOf(origin)
  const after = yield* record
  const changed: Array<License> = []
  const unchanged: Array<Unchanged> = []
  for (const license of licenses) {
    if (outcome === "keep" || !applies(license, outcome)) continue
    yield* send(operations[outcome], { params: { id: license.id } }).pipe(
      Effect.tap(() => Effect.sync(() => changed.push(license))),
      Effect.catch((error) =>
        Effect.sync(() =>
          unchanged.push({ license, message: isRefusal(error) ? error.message : "The service cannot be reached." })
        )
      )
    )
  }
  const result: Changed<A> = { record: after, outcome, changed, unchanged }
  return result
})
