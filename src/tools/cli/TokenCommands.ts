/** Commands for API tokens. An operator who has lost all tokens regains access with `create`. */
import { Console, Effect, Layer, Schema } from "effect"
import { Argument, Flag } from "effect/cli"
import { ManagementScope } from "../../access/Scope.ts"
import { limitMax } from "../../contract/api/Paging.ts"
import { Name } from "../../contract/api/Text.ts"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { ApiKey } from "../../vendor/apiKeys/ApiKey.ts"
import { ApiKeyCache } from "../../vendor/apiKeys/ApiKeyCache.ts"
import { ApiKeys } from "../../vendor/apiKeys/ApiKeys.ts"
import { aligned, jsonFlag, print } from "./Output.ts"

const isScope = Schema.is(ManagementScope)

const Scopes = Schema.String.check(
  Schema.makeFilter(
    (text) =>
      text.split(",").every((scope) => isScope(scope)) || `Expected some of ${ManagementScope.literals.join(",")}`
  )
)

export const createFlags = {
  name: Flag.String("name").pipe(Flag.withDescription("The key's name."), Flag.withSchema(Name)),
  scopes: Flag.String("scopes").pipe(
    Flag.withDescription("The key's scopes, separated by commas; admin allows everything."),
    Flag.withDefault("admin"),
    Flag.withSchema(Scopes)
  ),
  product: Flag.String("product").pipe(
    Flag.withDescription(
      "The id of a product that the key is for, once for each. Without it the key is for all products."
    ),
    Flag.atLeast(0)
  ),
  ...jsonFlag
}

export const revokeFlags = {
  id: Argument.String("id").pipe(Argument.withDescription("The API key's id, as `tokens list` shows it.")),
  ...jsonFlag
}

const encode = Schema.encodeSync(ApiKey)
const services = ApiKeys.layer.pipe(Layer.provide([ApiKeyCache.layer, EventLog.layer]))

interface CreateFlags {
  readonly name: string
  readonly scopes: string
  readonly product: ReadonlyArray<string>
  readonly json: boolean
}

/** As text, standard output contains only the token. */
export const createToken = Effect.fnUntraced(function* ({ name, product, scopes, json }: CreateFlags) {
  const keys = yield* ApiKeys
  const { api_key, token } = yield* keys.create({
    name,
    scopes: scopes.split(",").filter(isScope),
    ...(product.length === 0 ? undefined : { product_ids: [...new Set(product)] })
  })
  yield* print(json, { api_key: encode(api_key), token }, [token])
  const products = api_key.product_ids === undefined ? "" : `, for ${api_key.product_ids.join(", ")} only`
  yield* Console.error(
    `The API key ${api_key.id} has the scopes ${api_key.scopes.join(", ")}${products}. Its token is shown only now.`
  )
}, Effect.provide(services))

export const listTokens = Effect.fnUntraced(function* ({ json }: { readonly json: boolean }) {
  const { items, next } = yield* (yield* ApiKeys).list({ limit: limitMax })
  const rows = items.map(({ id, key_prefix, is_active, last_used_at, name, product_ids, scopes }) => [
    id,
    `${key_prefix}…`,
    is_active ? "active" : "inactive",
    last_used_at === undefined ? "never used" : `used ${formatTimestamp(last_used_at)}`,
    [scopes.join(","), ...(product_ids ?? [])].join(" "),
    name
  ])
  yield* print(
    json,
    items.map((key) => encode(key)),
    aligned(rows)
  )
  if (next !== undefined) yield* Console.error(`Only the newest ${limitMax} are shown: the API lists all.`)
}, Effect.provide(services))

export const revokeToken = Effect.fnUntraced(function* ({ id, json }: { readonly id: string; readonly json: boolean }) {
  yield* (yield* ApiKeys).delete(id)
  yield* print(json, { id, revoked: true }, [`${id} revoked`])
}, Effect.provide(services))
