/** The fields of an API key, and the one rule between two of them. */
import { Exit } from "effect"
import { refuse } from "../../../contract/api/Failure.ts"
import type { ApiKey } from "../../../vendor/apiKeys/ApiKey.ts"
import {
  type ChangeFieldsOf,
  type Choice,
  checks,
  type Field,
  type FieldsOf,
  flag,
  lastDay,
  lines,
  text
} from "../parts/Fields.tsx"
import { type Asked, lastOf } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"
import { requireRead, withListNote } from "../tables/ListFields.tsx"
import { scopeChoices } from "./Scopes.ts"

export type Creation = Payload<"createApiKey">
export type Update = Payload<"updateApiKey">

/** Products by name, with how they were read. */
export type Products = Asked<"listProducts">

const productsField = (of: Products, choices: ReadonlyArray<Choice>): Field<ReadonlyArray<string>> => ({
  ...withListNote(
    checks("Only for these products", choices, {
      hint: "None: for all products. A key that may do everything cannot be limited to products."
    }),
    of
  ),
  read: (texts) => (texts.length === 0 ? undefined : texts)
})

const shared = (of: Products, choices: ReadonlyArray<Choice> = lastOf(of)?.items ?? []) => ({
  name: text("Name", { required: true, hint: "Who or what uses the key." }),
  scopes: checks("What the key may do", scopeChoices),
  product_ids: productsField(of, choices),
  allowed_cidrs: lines("Networks that it may be used from", {
    hint: "One in each line, as 203.0.113.0/24. Leave empty for any."
  }),
  expires_at: lastDay("Expires at the end of", { hint: "Leave empty for never." })
})

/** Sent before the products can be read, a key would be for all of them. */
export const creationFields = (products: Products): FieldsOf<Creation> => {
  const fields = shared(products)
  return { ...fields, product_ids: requireRead(fields.product_ids, products) }
}

/** A key may name products that were deleted, or that do not fit into the list. */
export const changeFields = (products: Products, { product_ids = [] }: ApiKey): ChangeFieldsOf<Update> => ({
  ...shared(products, [
    ...(lastOf(products)?.items ?? []),
    ...product_ids
      .filter((id) => lastOf(products)?.items.some((product) => product.id === id) !== true)
      .map((id) => ({ id, name: id }))
  ]),
  is_active: flag("The key works")
})

const unlimited = refuse(
  "VALIDATION_ERROR",
  "A key that may do everything cannot be limited to products: choose what else it may do, or no product.",
  "product_ids"
)

/** Says before a key is sent that the service would refuse it. */
export const unlessContradicting = <A, E>(
  { product_ids, scopes = ["admin"] }: Pick<Creation, "scopes"> & { readonly product_ids?: Update["product_ids"] },
  send: () => Promise<Exit.Exit<A, E>>
): Promise<Exit.Exit<A, E | typeof unlimited>> =>
  scopes.includes("admin") && (product_ids?.length ?? 0) > 0 ? Promise.resolve(Exit.fail(unlimited)) : send()
