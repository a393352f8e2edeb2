/** Looks up the records that commands link a license to, and those that it is linked to. */
import { Effect } from "effect"
import { type LicenseRecord, type LinkRecord, linkKinds } from "../model/LicenseRecords.ts"
import type { Needs } from "../rules/LicenseCommand.ts"
import type { Lookups } from "./LicenseLookups.ts"

export const linkLookups = (
  lookups: Lookups,
  license: LicenseRecord,
  { links, owner, ownOrder, ownSubscription }: Needs,
  onFound: (link: LinkRecord) => void
): ReadonlyArray<Effect.Effect<void>> => {
  if (links === undefined && owner !== true && ownSubscription !== true) return []
  const own = {
    customer: owner === true ? license.customer_id : undefined,
    order: ownOrder === true ? license.order_id : undefined,
    subscription: ownSubscription === true ? license.subscription_id : undefined
  }
  return linkKinds.flatMap((kind) => {
    const id = links?.[kind] ?? own[kind]
    return id === undefined
      ? []
      : [Effect.map(lookups.link(kind, id), (link) => (link === undefined ? undefined : onFound(link)))]
  })
}
