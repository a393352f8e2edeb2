/** The licenses whose histories are recorded, two policies between which they move, and one metered feature. */
import { Clock, Effect } from "effect"
import type { RandomSource } from "../../simulation/requests/RandomSource.ts"
import type { Installation } from "../installation/Installation.ts"
import { featureCode, type SoldLicense } from "../load/Catalog.ts"
import type { Line } from "./Line.ts"

export const machines = 4
const initialQuota = 30

interface Policy {
  readonly id: string
  readonly max_activations: number
}

export interface Catalog {
  readonly productId: string
  readonly featureId: string
  /** Below the number of machines, so that the limit is reached. */
  readonly policies: ReadonlyArray<Policy>
}

interface Created {
  readonly id: string
}

export const makeCatalog = Effect.fnUntraced(function* ({ manage }: Installation) {
  const product = yield* manage<Created>("POST", "/products", { name: "Histories", code: "histories" })
  const feature = yield* manage<Created>("POST", `/products/${product.id}/features`, {
    name: featureCode,
    code: featureCode
  })
  const policies = yield* Effect.forEach([2, 3], (max_activations) =>
    manage<Policy>("POST", `/products/${product.id}/policies`, {
      name: `${max_activations} machines`,
      code: `machines-${max_activations}`,
      license_type: "perpetual",
      max_activations
    })
  )
  return { productId: product.id, featureId: feature.id, policies } satisfies Catalog as Catalog
})

const dayMillis = 86_400_000
/** When the day of a quota ends, after the license is created. */
const periodEndsAfterMillis = [2_000, 9_000] as const

/** Creates a license, half of them with a quota by the day that ends while the clients work. */
export const begin = Effect.fnUntraced(function* (
  { manage }: Installation,
  { featureId, policies, productId }: Catalog,
  key: string,
  lines: Array<Line>,
  random: RandomSource
) {
  const policy = random.pick(policies)
  const sent = yield* Clock.currentTimeMillis
  const periodEnd = random.chance(0.5) ? sent + random.between(...periodEndsAfterMillis) : undefined
  const { license, license_key } = yield* manage<{ license: Created; license_key: string }>(
    "POST",
    "/licenses",
    {
      product_id: productId,
      policy_id: policy.id,
      ...(periodEnd !== undefined && { starts_at: new Date(periodEnd - dayMillis).toISOString() }),
      features: [
        {
          feature_id: featureId,
          max_consumptions: initialQuota,
          ...(periodEnd !== undefined && { reset_period: "day" })
        }
      ]
    },
    key
  )
  const answered = yield* Clock.currentTimeMillis
  const byHarness = { history: license.id, client: machines, outcome: "acknowledged" } as const
  lines.push({
    ...{ ...byHarness, operation: "begin", sent, answered },
    ...{ quota: initialQuota, activations: policy.max_activations }
  })
  if (periodEnd !== undefined)
    lines.push({
      ...byHarness,
      client: machines + 1,
      operation: "period end",
      sent: periodEnd,
      answered: periodEnd + 1
    })
  return { id: license.id, key: license_key } satisfies SoldLicense as SoldLicense
})
