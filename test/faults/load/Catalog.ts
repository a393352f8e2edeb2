/** What the clients use: a product with a policy and a metered feature, and licenses for each round. */
import { Effect } from "effect"
import type { Installation } from "../installation/Installation.ts"

export const featureCode = "export"

/** Lower than what the clients ask for, so that limits are reached. */
export const initialLimits = { max_activations: 8, max_floating_users: 4 }
const initialQuota = 400

interface Created {
  readonly id: string
}

export interface SoldLicense {
  readonly id: string
  readonly key: string
}

export interface Catalog {
  readonly productId: string
  readonly policyId: string
  readonly featureId: string
}

/** The catalog, and one webhook endpoint for each receiver. */
export const makeCatalog = Effect.fnUntraced(function* ({ manage, receivers }: Installation, terms: object = {}) {
  const product = yield* manage<Created>("POST", "/products", { name: "Faults", code: "faults" })
  const policy = yield* manage<Created>("POST", `/products/${product.id}/policies`, {
    name: "Faults",
    code: "faults",
    license_type: "perpetual",
    ...initialLimits,
    ...terms
  })
  const feature = yield* manage<Created>("POST", `/products/${product.id}/features`, {
    name: featureCode,
    code: featureCode
  })
  for (const [name, receiver] of Object.entries(receivers)) {
    const { secret } = yield* manage<{ secret: string }>("POST", "/webhooks", { name, url: receiver.url })
    receiver.secret = secret
  }
  return { productId: product.id, policyId: policy.id, featureId: feature.id } satisfies Catalog as Catalog
})

/** Licenses that belong to one round only. */
export const sell = Effect.fnUntraced(function* (
  { manage }: Installation,
  { featureId, policyId, productId }: Catalog,
  round: string,
  count: number,
  quota = initialQuota
) {
  const body = {
    product_id: productId,
    policy_id: policyId,
    metadata: { round },
    features: [{ feature_id: featureId, max_consumptions: quota }]
  }
  const { licenses } = yield* manage<{ licenses: ReadonlyArray<{ license: Created; license_key: string }> }>(
    "POST",
    "/licenses/batch",
    { licenses: Array.from({ length: count }, () => body) },
    `sell-${round}`
  )
  return licenses.map(({ license, license_key }): SoldLicense => ({ id: license.id, key: license_key }))
})
