/** What the address of a list names that is only sorted and paged. */
import { Schema } from "effect"

export const CodeSearch = Schema.Struct({
  sort: Schema.optionalKey(Schema.Literals(["created_at", "-created_at", "code", "-code"])),
  cursor: Schema.optionalKey(Schema.String)
})

export const CreatedSearch = Schema.Struct({
  sort: Schema.optionalKey(Schema.Literals(["created_at", "-created_at"])),
  cursor: Schema.optionalKey(Schema.String)
})
