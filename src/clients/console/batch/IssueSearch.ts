/** What the address of the screen names on which a license is issued: what it is issued for. */
import { Schema } from "effect"

const id = Schema.optionalKey(Schema.String)

export const IssueSearch = Schema.Struct({ product_id: id, customer_id: id, order_id: id, subscription_id: id })
export type IssueSearch = typeof IssueSearch.Type
