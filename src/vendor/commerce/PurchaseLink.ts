import { Schema, SchemaGetter } from "effect"
import { Text } from "../../contract/api/Text.ts"
import { Customer } from "../customers/Customer.ts"

/** A link in an update: an id sets it, null or an empty text clears it, an absent member keeps it. */
export const Link = Schema.NullOr(Text(64))
  .annotate({ description: "An empty text clears the link." })
  .pipe(
    Schema.decodeTo(Schema.NullOr(Schema.String), {
      decode: SchemaGetter.transform((id) => (id === "" ? null : id)),
      encode: SchemaGetter.passthrough()
    })
  )

export const expandedCustomer = {
  expanded: Schema.optionalKey(
    Schema.Struct({ customer: Schema.optionalKey(Customer) }).annotate({
      description: "With expand: the customer, if one is linked and the token reaches it."
    })
  )
}

export interface ExpandedCustomer {
  readonly expanded?: { readonly customer?: Customer }
}
