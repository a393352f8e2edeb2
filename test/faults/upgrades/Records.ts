/** Records of each kind over HTTP, by requests that the first version understands, and what the API answers about them. */
import { randomUUID } from "node:crypto"

export interface Service {
  readonly base: string
  readonly token: string
}

export interface Answer {
  readonly status: number
  readonly json: { readonly data?: unknown; readonly error?: { readonly code: string } }
}

export const ask = async (
  { base, token }: Service,
  method: string,
  path: string,
  body?: object,
  authorization = `Bearer ${token}`
): Promise<Answer> => {
  const response = await fetch(`${base}/api/v1${path}`, {
    method,
    headers: {
      authorization,
      "content-type": "application/json",
      ...(method !== "GET" && { "idempotency-key": randomUUID() })
    },
    ...(body && { body: JSON.stringify(body) })
  })
  const text = await response.text()
  return { status: response.status, json: text.startsWith("{") ? JSON.parse(text) : {} }
}

interface Created {
  readonly id: string
  readonly license: Created
  readonly license_key: string
  readonly lease_token: string
}

type Send = (method: string, path: string, body?: object, authorization?: string) => Promise<Created>

export class Refused extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export const sender =
  (service: Service): Send =>
  async (method, path, body, authorization) => {
    const { json, status } = await ask(service, method, path, body, authorization)
    if (status >= 300) throw new Refused(status, `${method} ${path} answered ${status}: ${JSON.stringify(json)}`)
    return json.data as Created
  }

const named = (name: string) => ({ name, code: name })

const makeCatalog = async (send: Send) => {
  const product = await send("POST", "/products", { ...named("editor"), metadata: { team: "desktop" } })
  const add = (kind: string, body: object) => send("POST", `/products/${product.id}/${kind}`, body)
  await add("versions", { version: "1.0", released_at: "2026-01-01T00:00:00Z" })
  const perpetual = { license_type: "perpetual", max_activations: 5, max_floating_users: 5 }
  const onLicenses = { resource_type: "license", value_type: "string" }
  return {
    product,
    add,
    counted: await add("features", named("export")),
    included: await add("features", named("print")),
    lasting: await add("policies", { ...named("lasting"), ...perpetual }),
    timed: await add("policies", { ...named("timed"), license_type: "time_limited", max_activations: 1 }),
    department: await add("custom-fields", { ...named("department"), ...onLicenses }),
    size: await add("custom-fields", { ...named("size"), resource_type: "customer", value_type: "integer" })
  }
}

type Catalog = Awaited<ReturnType<typeof makeCatalog>>

export const farAway = "2036-01-01T00:00:00Z"

const sellLicenses = async (send: Send, catalog: Catalog) => {
  const { add, lasting, product, timed } = catalog
  const customer = await send("POST", "/customers", { ...named("ada"), email: "ada@customer.example" })
  const external = { customer_id: customer.id, external_system: "shop" }
  const order = await add("orders", { ...external, external_id: "order-1", status: "paid" })
  const period = { current_period_start: "2026-01-01T00:00:00Z", current_period_end: farAway }
  const subscription = await add("subscriptions", { ...external, external_id: "sub-1", status: "active", ...period })
  const sell = (policy_id: string, rest: object) =>
    send("POST", "/licenses", { product_id: product.id, policy_id, ...rest })
  await send("PUT", `/customers/${customer.id}/custom-fields/${catalog.size.id}`, { integer_value: 12 })
  const links = { customer_id: customer.id, order_id: order.id, metadata: { seat: 1 } }
  return {
    sold: await sell(lasting.id, links),
    subscribed: await sell(lasting.id, { subscription_id: subscription.id }),
    suspended: await sell(timed.id, { expires_at: farAway }),
    revoked: await sell(timed.id, { expires_at: farAway })
  }
}

const use = async (send: Send, authorization: string) => {
  const call = (path: string, body: object) => send("POST", `/license/${path}`, body, authorization)
  for (const fingerprint of ["first", "second", "third"]) await call("activate", { fingerprint })
  await call("deactivate", { fingerprint: "second" })
  const used = { fingerprint: "first", feature_code: "export" }
  for (let amount = 1; amount <= 5; amount++) await call("consume", { ...used, event_id: `use-${amount}`, amount })
  await call("validate", { fingerprint: "first" })
  const { lease_token } = await call("floating/checkout", { fingerprint: "first" })
  await call("floating/checkin", { lease_token })
}

/** Returns the key of a license whose device `first` has consumed 15 of `export`, of them 1 as `use-1`. */
export const makeRecords = async (service: Service): Promise<string> => {
  const send = sender(service)
  await send("POST", "/api-keys", { name: "reader", scopes: ["license:read"] })
  const url = "https://hooks.example.com/licensing"
  await send("POST", "/webhooks", { name: "shop", url, event_types: ["license.renewed"] })
  const catalog = await makeCatalog(send)
  const { revoked, sold, subscribed, suspended } = await sellLicenses(send, catalog)
  const [own, other] = [`/licenses/${sold.license.id}`, `/licenses/${subscribed.license.id}`]
  await send("POST", `${own}/features`, { feature_id: catalog.counted.id, max_consumptions: 100 })
  await send("POST", `${other}/features`, { feature_id: catalog.included.id })
  await send("PUT", `${own}/custom-fields/${catalog.department.id}`, { string_value: "physics" })
  await use(send, `License ${sold.license_key}`)
  await send("POST", `${own}/usage/reset`, { feature_code: "export", add_credits: 50 })
  await send("POST", `/licenses/${suspended.license.id}/suspend`, {})
  await send("POST", `/licenses/${revoked.license.id}/revoke`, {})
  return sold.license_key
}

/** Lists, and the resources below each of their items. An early version lacks some. */
const lists: Readonly<Record<string, ReadonlyArray<string>>> = {
  "/products": ["", "/policies", "/features", "/versions", "/orders", "/subscriptions", "/custom-fields"],
  "/licenses": ["", "/features", "/devices", "/custom-fields", "/leases"],
  "/customers": ["", "/custom-fields"],
  "/api-keys": [""],
  "/webhooks": [""],
  "/bulk-jobs": ["", "/refusals"],
  "/events": [],
  "/reports/usage-ledger?from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z": []
}

/** The harness uses its own key, and migration 0020 shows less of the beginning of a vendor's own keys. */
const isVolatile = (name: string, value: unknown) =>
  name === "last_used_at" || (name === "license_key_prefix" && !String(value).startsWith("LK-"))

export type Read = Readonly<Record<string, unknown>>

/** Every resource by its path. */
export const readRecords = async (service: Service): Promise<Read> => {
  const read: Record<string, unknown> = {}
  const get = async (path: string) => {
    const { json, status } = await ask(service, "GET", path)
    if (status === 404) return []
    if (status !== 200) throw new Error(`GET ${path} answered ${status}: ${JSON.stringify(json)}`)
    read[path] = JSON.parse(JSON.stringify(json.data, (name, value) => (isVolatile(name, value) ? undefined : value)))
    return json.data
  }
  for (const [list, below] of Object.entries(lists)) {
    const items = (await get(list)) as ReadonlyArray<{ readonly id: string }>
    for (const { id } of below.length === 0 ? [] : items) for (const rest of below) await get(`${list}/${id}${rest}`)
  }
  return read
}

/** Where an answer lacks what an earlier one had. Later versions may add members, and items to lists. */
export const lacking = (before: unknown, after: unknown, path = ""): ReadonlyArray<string> => {
  if (Array.isArray(before) && Array.isArray(after)) {
    return before.flatMap((item, index) => {
      const found = after.some((other) => lacking(item, other).length === 0)
      return found ? [] : [`${path}[${index}]: ${JSON.stringify(item)} is not among ${JSON.stringify(after)}`]
    })
  }
  if (isObject(before) && isObject(after)) {
    return Object.entries(before).flatMap(([name, value]) => lacking(value, after[name], `${path}.${name}`))
  }
  return before === after ? [] : [`${path}: ${JSON.stringify(before)} is ${JSON.stringify(after)}`]
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
