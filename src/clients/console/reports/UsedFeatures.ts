/** The names of features in figures, also of products beyond the first ones. */
import type { FeatureNames } from "../parts/FeatureNames.ts"
import { firstProducts, useFeatureNames } from "../parts/Names.tsx"
import { lastOf, useAskEach, useMay } from "../service/Hooks.ts"
import type { scopeOf } from "./UsageSearch.ts"

type Scope = Partial<ReturnType<typeof scopeOf>>

/** Reads the features of the products that were used most: the service names features in sums by code only. */
export const useUsedFeatureNames = ({ feature_code: _, product_id, ...scope }: Scope): FeatureNames => {
  const isOfAll = useMay()("product:read") && product_id === undefined
  const [products] = useAskEach("listProducts", isOfAll ? [{ query: { limit: 200, sort: "code" } }] : [])
  const isCut = ((products && lastOf(products)?.items.length) ?? 0) > firstProducts
  const [used] = useAskEach("getUsageSummary", isCut ? [{ query: { ...scope, group_by: ["product_id"] } }] : [])
  const rows = [...((used && lastOf(used)?.rows) ?? [])].sort((one, other) => other.consumed - one.consumed)
  return useFeatureNames(
    product_id,
    rows.map((row) => row.product_id)
  )
}
