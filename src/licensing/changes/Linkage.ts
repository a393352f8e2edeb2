/** Which orders and subscriptions a license may link to (docs/API.md, "Orders and subscriptions", rules 1 and 3). */

import { isErasing, unknownId } from "../../contract/api/Failure.ts"
import type { LicenseView, LinkRecord } from "../model/LicenseRecords.ts"
import { type Refused, reject } from "../rules/LicenseCommand.ts"

/** The records that a request names; undefined for the others. */
export interface Links {
  readonly order: LinkRecord | undefined
  readonly subscription: LinkRecord | undefined
}

export const refuseLinks = (
  productId: string,
  { order, subscription }: Links
): Refused<"LINKAGE_MISMATCH"> | undefined => {
  if (order !== undefined && order.product_id !== productId) {
    return mismatch(
      "The order belongs to another product than the license: use an order of the license's product.",
      "order_id"
    )
  }
  if (subscription !== undefined && subscription.product_id !== productId) {
    return mismatch(
      "The subscription belongs to another product than the license: use a subscription of the license's product.",
      "subscription_id"
    )
  }
  if (order !== undefined && subscription !== undefined && order.subscription_id !== subscription.id) {
    return unmatched
  }
  return undefined
}

interface LinkIds {
  readonly order_id?: string | undefined
  readonly subscription_id?: string | undefined
}

/** The records that a command names, or the refusal if the license must not link to them. */
export const namedLinks = (
  view: Pick<LicenseView, "license" | "link">,
  { order_id, subscription_id }: LinkIds
): Links | Refused<"NOT_FOUND" | "LINKAGE_MISMATCH"> => {
  const order = order_id === undefined ? undefined : view.link("order", order_id)
  if (order_id !== undefined && order === undefined) return refuseUnknown("order", order_id)
  const subscription = subscription_id === undefined ? undefined : view.link("subscription", subscription_id)
  if (subscription_id !== undefined && subscription === undefined) return refuseUnknown("subscription", subscription_id)
  const links: Links = { order, subscription }
  return refuseLinks(view.license.product_id, links) ?? links
}

const refuseUnknown = (kind: "order" | "subscription", id: string) =>
  reject("NOT_FOUND", unknownId(kind, id), { detail: `${kind}_id` })

/**
 * The links of a license after an edit. A named order also links its subscription, unless the edit names one. An
 * omitted link stays otherwise, and the two must match. A null clears one link; the other stays.
 */
export const editedLinks = (
  view: Pick<LicenseView, "license" | "link">,
  edit: { readonly order_id?: string | null; readonly subscription_id?: string | null }
): LinkIds | Refused<"NOT_FOUND" | "LINKAGE_MISMATCH"> => {
  if (edit.order_id === undefined && edit.subscription_id === undefined) return {}
  const { order_id, subscription_id } = { ...view.license, ...edit }
  const named = namedLinks(view, {
    order_id: edit.order_id ?? undefined,
    subscription_id: edit.subscription_id ?? undefined
  })
  if ("accepted" in named) return named
  const inferred = edit.subscription_id === undefined ? named.order?.subscription_id : undefined
  const links = { order_id: order_id ?? undefined, subscription_id: inferred ?? subscription_id ?? undefined }
  const { license } = view
  const isSame = links.order_id === license.order_id && links.subscription_id === license.subscription_id
  if (isSame || links.order_id === undefined || links.subscription_id === undefined) return links
  // An omitted order is the license's own.
  const order = view.link("order", links.order_id)
  return order?.subscription_id === links.subscription_id ? links : unmatched
}

/** Refuses to link a license to a customer that is being erased, or to copy that customer's name or e-mail. */
export const refuseErasing = (
  view: Pick<LicenseView, "link">,
  customerId: string | undefined
): Refused<"CONFLICT"> | undefined =>
  customerId !== undefined && view.link("customer", customerId)?.erasing === true
    ? reject("CONFLICT", isErasing, { detail: "customer_id", isTemporary: true })
    : undefined

const mismatch = (message: string, detail: string) => reject("LINKAGE_MISMATCH", message, { detail })

const unmatched = mismatch(
  "The order is not linked to this subscription: give the order's own subscription, or only one of the two.",
  "subscription_id"
)
