/** An API key: the scopes, client networks and expiry of a management token. The token is shown only once. */
import { Result, Schema } from "effect"
import { ManagementScope } from "../../access/Scope.ts"
import { networkFromString } from "../../contract/api/Network.ts"
import { Name, publishedAs, Text } from "../../contract/api/Text.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"

/** The address of every request is compared with each network. */
const cidrsMax = 100

const octet = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
/** The pattern cannot check that an IPv6 address is complete, nor that there are no host bits. */
const cidrShape = `^(${octet}(\\.${octet}){3}/(3[0-2]|[12]?[0-9])|[0-9A-Fa-f:.]{2,45}/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))$`

const Cidr = Text(64).check(
  publishedAs({ pattern: cidrShape }),
  Schema.makeFilter(
    (text) =>
      Result.isSuccess(networkFromString(text)) ||
      "Expected a network in CIDR notation without host bits, such as 203.0.113.0/24 or 2001:db8::/32"
  )
)

const Scopes = Schema.Array(ManagementScope).check(
  Schema.isMinLength(1, { expected: "at least 1 scope" }),
  Schema.isMaxLength(64, { expected: "at most 64 scopes" })
)
const AllowedCidrs = Schema.Array(Cidr)
  .check(Schema.isMaxLength(cidrsMax, { expected: `at most ${cidrsMax} networks` }))
  .annotate({ description: "Networks that the key works from, without host bits; empty = any." })

const productsMax = 100
const ProductIds = Schema.Array(Text(64).check(Schema.isMinLength(1, { expected: "the id of a product" }))).check(
  Schema.isUnique({ expected: "each product once" }),
  Schema.isMinLength(1, { expected: "at least 1 product" }),
  Schema.isMaxLength(productsMax, { expected: `at most ${productsMax} products` })
)

export const ApiKey = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  key_prefix: Schema.String.annotate({ description: "The token's first 12 characters." }),
  scopes: Schema.Array(ManagementScope),
  allowed_cidrs: Schema.Array(Schema.String).annotate({
    description: "The networks that the token works from; empty: any."
  }),
  product_ids: Schema.optionalKey(
    Schema.Array(Schema.String).annotate({
      description: "The products that the key is for; absent: all. A product that was deleted stays in the list."
    })
  ),
  is_active: Schema.Boolean,
  created_at: Timestamp,
  expires_at: Schema.optionalKey(Instant("When the token stops working; absent: never.")),
  last_used_at: Schema.optionalKey(Instant("When the token was last used, exact to a minute."))
}).annotate({ identifier: "ApiKey", description: "A token of the management API, without its text." })
export type ApiKey = typeof ApiKey.Type

export const apiKeySorts = { created_at: "instant" } as const

export const ApiKeyCreate = Schema.Struct({
  name: Name,
  scopes: Schema.optionalKey(Scopes.annotate({ default: ["admin"] })),
  allowed_cidrs: Schema.optionalKey(AllowedCidrs),
  product_ids: Schema.optionalKey(
    ProductIds.annotate({
      description: "Limits the key to what belongs to these products. Not together with the scope admin."
    })
  ),
  expires_at: Schema.optionalKey(Timestamp)
}).annotate({ identifier: "ApiKeyCreateRequest" })

export const ApiKeyUpdate = Schema.Struct({
  name: Schema.optionalKey(Name),
  scopes: Schema.optionalKey(Scopes),
  allowed_cidrs: Schema.optionalKey(AllowedCidrs),
  product_ids: Schema.optionalKey(
    Schema.NullOr(ProductIds).annotate({
      description: "The products that the key is for; null: all. Not together with the scope admin."
    })
  ),
  is_active: Schema.optionalKey(Schema.Boolean),
  expires_at: Schema.optionalKey(
    Schema.NullOr(Timestamp).annotate({ description: "When the token stops working; null: never. Absent: unchanged." })
  )
}).annotate({ identifier: "ApiKeyUpdateRequest" })

export const ApiKeyWithToken = Schema.Struct({
  api_key: ApiKey,
  token: Schema.String.annotate({ description: "The full token. It is shown only here: store it." })
}).annotate({
  identifier: "ApiKeyWithToken",
  description: "An API key with its token, which only this response shows."
})
export type ApiKeyWithToken = typeof ApiKeyWithToken.Type
