/** A customer. Licenses, orders and subscriptions can link to it. */
import { Schema } from "effect"
import { Metadata } from "../../contract/api/Metadata.ts"
import { Code, Email, Name } from "../../contract/api/Text.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"

export const Customer = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  code: Schema.String,
  metadata: Metadata,
  created_at: Timestamp,
  updated_at: Timestamp,
  email: Schema.optionalKey(Schema.String),
  erased_at: Schema.optionalKey(Instant("When the customer's data was erased; data added later is shown."))
}).annotate({ identifier: "Customer", description: "A person or company that owns licenses." })
export type Customer = typeof Customer.Type

export const customerSorts = { created_at: "instant", code: "text", name: "text" } as const

export const CustomerCreate = Schema.Struct({
  name: Name,
  code: Code,
  email: Schema.optionalKey(Email),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "CustomerCreateRequest" })

export const CustomerUpdate = Schema.Struct({
  name: Schema.optionalKey(Name),
  code: Schema.optionalKey(Code),
  email: Schema.optionalKey(Schema.NullOr(Email)),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "CustomerUpdateRequest" })
