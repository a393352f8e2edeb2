/** A link to another record in an update: an id sets it, null or an empty text clears it, an absent member keeps it. */
import { Schema, SchemaGetter } from "effect"
import { Text } from "../api/Text.ts"

export const Link = Schema.NullOr(Text(64))
  .annotate({ description: "An empty text clears the link." })
  .pipe(
    Schema.decodeTo(Schema.NullOr(Schema.String), {
      decode: SchemaGetter.transform((id) => (id === "" ? null : id)),
      encode: SchemaGetter.passthrough()
    })
  )
