/** What the address of the customer list names. */
import { Schema } from "effect"

const text = Schema.optionalKey(Schema.String)

export const CustomerSearch = Schema.Struct({
  email: text,
  code: text,
  sort: Schema.optionalKey(Schema.Literals(["created_at", "-created_at", "code", "-code", "name", "-name"])),
  cursor: text
})
export type CustomerSearch = typeof CustomerSearch.Type
