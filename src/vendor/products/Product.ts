/** A product: what licenses are issued for. */
import { Schema } from "effect"
import { Metadata } from "../../contract/api/Metadata.ts"
import { Code, Name } from "../../contract/api/Text.ts"
import { Timestamp } from "../../contract/api/Timestamp.ts"

export const Product = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  code: Schema.String,
  metadata: Metadata,
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Product", description: "A product whose use is licensed." })
export type Product = typeof Product.Type

export const productSorts = { created_at: "instant", code: "text" } as const

export const ProductCreate = Schema.Struct({
  name: Name,
  code: Code,
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "ProductCreateRequest" })

export const ProductUpdate = Schema.Struct({
  name: Schema.optionalKey(Name),
  code: Schema.optionalKey(Code),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "ProductUpdateRequest" })
