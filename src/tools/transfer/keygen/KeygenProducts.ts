/** Which product here each product of an account becomes. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { columns } from "../../../platform/postgres/driver/Parameters.ts"
import { TransferRefused } from "../Lines.ts"
import { type Account, entitlementsOf, featureCode, productCode } from "./Catalog.ts"
import { idOf } from "./Notes.ts"

/** Codes by the ids of Keygen's products. */
export type ProductCodes = Readonly<Record<string, string>>

/** Names the target of each product: a new one, the one of an earlier import, or an existing one that is chosen. */
export const chooseProducts = Effect.fnUntraced(function* (account: Account, codes: ProductCodes) {
  const chosen = new Map(Object.entries(codes))
  const unknown = [...chosen.keys()].find((id) => !account.products.has(id))
  if (unknown !== undefined) {
    return yield* new TransferRefused({ message: `The account has no product ${unknown}: correct --product.` })
  }
  const sources = [...account.products.values()]
  const wanted = sources.map((source) => chosen.get(source.id) ?? productCode(source))
  const sql = yield* SqlClient.SqlClient
  const found = yield* Effect.orDie(sql<{
    readonly id: string
    readonly code: string
    readonly features: Readonly<Record<string, string>>
  }>`
    SELECT p.id, p.code, coalesce(jsonb_object_agg(f.code, f.id) FILTER (WHERE f.id IS NOT NULL), '{}') AS features
    FROM products p LEFT JOIN features f ON f.product_id = p.id
    WHERE p.code = ANY(${columns.text(wanted)}) OR p.id = ANY(${columns.text(sources.map((source) => idOf("prod", source.id)))})
    GROUP BY p.id`)
  const faults = sources.flatMap((source, index) => {
    const id = idOf("prod", source.id)
    const code = wanted[index]!
    const flag = `--product ${source.id}=CODE`
    const earlier = found.find((product) => product.id === id)
    const existing = found.find((product) => product.code === code)
    if (earlier !== undefined && chosen.has(source.id) && earlier.code !== code) {
      return [`The product ${source.id} was imported with the code ${earlier.code}: name that code in ${flag}.`]
    }
    if (earlier !== undefined || existing === undefined) {
      account.targets.set(source.id, { id, code })
      return []
    }
    if (!chosen.has(source.id)) {
      return [
        `A product with the code ${code} exists already: choose the code of an existing or a new product with ${flag}.`
      ]
    }
    const features = new Map(Object.entries(existing.features))
    account.targets.set(source.id, { id: existing.id, code, features })
    const missing = entitlementsOf(account, source.id).map(featureCode)
    const lacking = missing.filter((feature) => !features.has(feature))
    return lacking.length === 0
      ? []
      : [
          `The product ${code} lacks the features ${lacking.join(", ")}: create them, or choose another code with ${flag}.`
        ]
  })
  if (faults.length > 0) return yield* new TransferRefused({ message: faults.join("\n") })
})
