/** The records that valid requests refer to, made over HTTP. */
import { type Template, templatesFor } from "./Templates.ts"

interface Created {
  readonly id: string
}

export const makeTemplates = async (base: string, token: string): Promise<ReadonlyArray<Template>> => {
  const create = async <A = Created>(path: string, body: object): Promise<A> => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const response = await fetch(`${base}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(await response.text())
    return ((await response.json()) as { readonly data: A }).data
  }
  const product = await create("/products", { name: "Bytes", code: "bytes" })
  const feature = await create(`/products/${product.id}/features`, { name: "Export", code: "export" })
  const customer = await create("/customers", { name: "Bytes", code: "bytes" })
  const unlimited = { max_activations: 0, max_floating_users: 1_000 }
  const named = { name: "Bytes", code: "bytes", license_type: "perpetual" }
  const policy = await create(`/products/${product.id}/policies`, { ...named, ...unlimited })
  const { license, license_key } = await create<{ license: Created; license_key: string }>("/licenses", {
    product_id: product.id,
    policy_id: policy.id,
    features: [{ feature_id: feature.id }]
  })
  const ids = { prod_: product.id, feat_: feature.id, cust_: customer.id, pol_: policy.id, lic_: license.id }
  return templatesFor({ token, licenseKey: license_key, ids })
}
