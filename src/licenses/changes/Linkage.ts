/**
 * The conditions for linking an order and a subscription to a license (docs/API.md, "Orders and subscriptions": linkage
 * rules 1 and 3).
 */

import { isErasing } from "../../api/Failure.ts"
import type { LicenseView, LinkRecord } from "../model/LicenseRecords.ts"
import { type Refused, reject } from "../rules/LicenseCommand.ts"

/** The records that a request names; undefined for those that it omits. */
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
    return mismatch(
      "The order is not linked to this subscription: give the order's own subscription, or only one of the two.",
      "subscription_id"
    )
  }
  return undefined
}

/** Refuses to link a license to a customer that is being erased, and to name the license after it. */
export const refuseErasing = (
  view: Pick<LicenseView, "link">,
  customerId: string | undefined
): Refused<"CONFLICT"> | undefined =>
  customerId !== undefined && view.link("customer", customerId)?.erasing === true
    ? reject("CONFLICT", isErasing, { detail: "customer_id", isTemporary: true })
    : undefined

const mismatch = (message: string, detail: string) => reject("LINKAGE_MISMATCH", message, { detail })
