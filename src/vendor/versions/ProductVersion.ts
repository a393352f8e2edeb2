/** A version of a product. A license's version cutoff is compared with its release date. */
import { Schema } from "effect"
import { Metadata } from "../../contract/api/Metadata.ts"
import { isMinCharacters, Text } from "../../contract/api/Text.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"

export const ProductVersion = Schema.Struct({
  id: Schema.String,
  product_id: Schema.String,
  version: Schema.String.annotate({ description: "The version, such as 2.4.0." }),
  released_at: Timestamp,
  metadata: Metadata,
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "ProductVersion", description: "A released version of a product." })
export type ProductVersion = typeof ProductVersion.Type

export const versionFilters = { version: Schema.optionalKey(Schema.String) }

export const versionSorts = { created_at: "instant", released_at: "instant" } as const

export const ProductVersionCreate = Schema.Struct({
  version: Text(255)
    .check(isMinCharacters(1))
    .annotate({ description: "Compared with a client's app_version character by character." }),
  released_at: Schema.optionalKey(Instant("When the version was released; the time of the request if absent.")),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "ProductVersionCreateRequest" })
