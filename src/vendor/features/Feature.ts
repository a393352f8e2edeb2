/** A feature of a product, which licenses can grant. */
import { Schema } from "effect"
import { Metadata } from "../../contract/api/Metadata.ts"
import { Code, Name } from "../../contract/api/Text.ts"
import { Timestamp } from "../../contract/api/Timestamp.ts"

export const Feature = Schema.Struct({
  id: Schema.String,
  product_id: Schema.String,
  code: Schema.String,
  name: Schema.String,
  metadata: Metadata,
  created_at: Timestamp
}).annotate({ identifier: "Feature", description: "A feature of a product, which licenses can have." })
export type Feature = typeof Feature.Type

export const featureFilters = { code: Schema.optionalKey(Schema.String) }

export const featureSorts = { created_at: "instant", code: "text" } as const

export const FeatureCreate = Schema.Struct({
  name: Name,
  code: Code,
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "FeatureCreateRequest" })

export const FeatureUpdate = Schema.Struct({
  name: Schema.optionalKey(Name),
  code: Schema.optionalKey(Code),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "FeatureUpdateRequest" })
