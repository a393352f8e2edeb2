/** What the address of the list of versions names. */
import { Schema } from "effect"

const text = Schema.optionalKey(Schema.String)

export const VersionSearch = Schema.Struct({
  version: text,
  sort: Schema.optionalKey(Schema.Literals(["created_at", "-created_at", "released_at", "-released_at"])),
  cursor: text
})
export type VersionSearch = typeof VersionSearch.Type
