/** Licenses with the records that they name, read with one statement for each kind of record. */
import { Context, Effect, Layer } from "effect"
import type { Page } from "../../contract/api/Paging.ts"
import { Customers } from "../../vendor/customers/Customers.ts"
import { Policies } from "../../vendor/policies/Policies.ts"
import { Products } from "../../vendor/products/Products.ts"
import type { Expandable, License } from "../model/License.ts"
import type { LicenseFilter } from "./LicenseList.ts"
import { Licenses } from "./Licenses.ts"

interface Expansion {
  readonly expand?: ReadonlyArray<Expandable>
}

export class ExpandedLicenses extends Context.Service<
  ExpandedLicenses,
  { list(filter: LicenseFilter & Expansion): Effect.Effect<Page<License>> }
>()("licensing/licensing/management/ExpandedLicenses") {
  static readonly layer = Layer.effect(
    ExpandedLicenses,
    Effect.gen(function* () {
      const licenses = yield* Licenses
      const products = yield* Products
      const policies = yield* Policies
      const customers = yield* Customers

      const expanded = Effect.fnUntraced(function* (
        items: ReadonlyArray<License>,
        expand: ReadonlyArray<Expandable>
      ): Effect.fn.Return<ReadonlyArray<License>> {
        const idsOf = (kind: Expandable) =>
          expand.includes(kind) ? [...new Set(items.flatMap((license) => license[`${kind}_id`] ?? []))] : []
        const product = byId(yield* products.many(idsOf("product")))
        const policy = byId(yield* policies.many(idsOf("policy")))
        const customer = byId(yield* customers.many(idsOf("customer")))
        return items.map((license) => ({
          ...license,
          expanded: {
            ...named("product", product.get(license.product_id)),
            ...named("policy", policy.get(license.policy_id)),
            ...named("customer", customer.get(license.customer_id ?? ""))
          }
        }))
      })

      const list = Effect.fn("ExpandedLicenses.list")(function* ({ expand, ...filter }: LicenseFilter & Expansion) {
        const page = yield* licenses.list(filter)
        return expand === undefined ? page : { ...page, items: yield* expanded(page.items, expand) }
      })

      return ExpandedLicenses.of({ list })
    })
  )
}

export const byId = <A extends { readonly id: string }>(records: ReadonlyArray<A>): ReadonlyMap<string, A> =>
  new Map(records.map((record) => [record.id, record]))

const named = <const K extends Expandable, A>(kind: K, record: A | undefined) =>
  (record === undefined ? {} : { [kind]: record }) as { readonly [Kind in K]?: A }
