/** What is imported: a CSV file, the pages of a Keygen account, and requests for batches. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"

interface Node {
  readonly base: string
  readonly token: string
}

export interface Catalog {
  readonly product_id: string
  readonly policy_id: string
}

const post = async ({ base, token }: Node, path: string, body: object): Promise<{ readonly id: string }> => {
  const answer = await fetch(`${base}/api/v1${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  const text = await answer.text()
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${text.slice(0, 300)}`)
  return JSON.parse(text).data
}

export const createCatalog = async (node: Node): Promise<Catalog> => {
  const product = await post(node, "/products", { name: "Editor", code: "editor" })
  const policy = await post(node, `/products/${product.id}/policies`, {
    ...{ name: "Pro", code: "pro", license_type: "time_limited" }
  })
  return { product_id: product.id, policy_id: policy.id }
}

const perCustomer = 4
const batchMax = 1_000

/** Four licenses for each customer, one below the other. */
export const writeCsv = (path: string, licenses: number) => {
  const rows = Array.from({ length: licenses }, (_, index) => {
    const customer = Math.floor(index / perCustomer)
    return `IMPORTED-KEY-${index},editor,pro,customer-${customer},Maria Person ${customer},person${customer}@example.com,2099-12-31,${index}`
  })
  const names = "license_key,product,policy,customer,customer_name,customer_email,expires_at,metadata.order"
  writeFileSync(path, [names, ...rows, ""].join("\n"))
}

export const issueBatches = async (node: Node, catalog: Catalog, count: number) => {
  for (let index = 0; index < count; index++) {
    const licenses = Array.from({ length: batchMax }, (_, order) => ({
      ...catalog,
      ...{ expires_at: "2099-12-31T00:00:00.000Z", metadata: { order } }
    }))
    await post(node, "/licenses/batch", { licenses })
  }
}

const pageSize = 100

/** An account with a user for four licenses, and a machine for each license. */
export const writeKeygen = (folder: string, licenses: number) => {
  mkdirSync(folder, { recursive: true })
  const resource = (type: string, id: string, attributes: object, related: Record<string, string> = {}) => ({
    ...{ id, type, attributes },
    relationships: Object.fromEntries(
      Object.entries(related).map(([name, target]) => [name, { data: { type: `${name}s`, id: target } }])
    )
  })
  const created = "2025-01-01T00:00:00.000Z"
  const write = (name: string, count: number, make: (index: number) => object) => {
    for (let first = 0; first < count; first += pageSize) {
      const data = Array.from({ length: Math.min(pageSize, count - first) }, (_, index) => make(first + index))
      writeFileSync(join(folder, `${name}-${String(first / pageSize).padStart(6, "0")}.json`), JSON.stringify({ data }))
    }
  }
  write("products", 1, () => resource("products", "product", { name: "Editor", code: "editor", created }))
  write("policies", 1, () =>
    resource(
      "policies",
      "policy",
      { name: "Pro", duration: 31_536_000, maxMachines: 5, floating: true, created },
      { product: "product" }
    )
  )
  const user = (index: number) => `user-${index}`
  write("users", Math.ceil(licenses / perCustomer), (index) =>
    resource("users", user(index), { fullName: `Maria Person ${index}`, email: `person${index}@example.com`, created })
  )
  write("licenses", licenses, (index) =>
    resource(
      "licenses",
      `license-${index}`,
      { key: `KEYGEN-${index}-KEY`, expiry: "2099-12-31T00:00:00.000Z", status: "ACTIVE", created },
      { policy: "policy", owner: user(Math.floor(index / perCustomer)) }
    )
  )
  write("machines", licenses, (index) =>
    resource("machines", `machine-${index}`, { fingerprint: `fp-${index}`, created }, { license: `license-${index}` })
  )
}
