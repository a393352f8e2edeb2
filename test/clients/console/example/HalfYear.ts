/** Half a year in the life of the example's vendor, which ends now. All of it happens over the public API; a seed decides what. */
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { codeOf, customerNames, machines, makeCatalog, type Offered, systems } from "./Vendor.ts"

export const days = 180
const stepDays = 2
const daySeconds = 86_400
const dayMillis = daySeconds * 1_000

/** Numbers from 0 to below 1 (mulberry32). */
const randomFrom = (seed: number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

interface Sold {
  readonly id: string
  readonly key: string
  readonly offer: Offered
  readonly binding: string
}

const makeTools = Effect.fnUntraced(function* (seed: number) {
  const random = randomFrom(seed)
  const { client, send } = yield* TestServer
  const offers = yield* makeCatalog
  const customers = new Map<string, string>()
  const pick = <A>(of: ReadonlyArray<A>): A => of[Math.floor(random() * of.length)]!
  const chance = (share: number) => random() < share
  /** A request of an application. What the service refuses is part of the example. */
  const use = ({ key }: Pick<Sold, "key">, operation: string, body: object) =>
    Effect.asVoid(
      send({
        method: "POST",
        path: `/api/v1/license/${operation}`,
        headers: { authorization: `License ${key}` },
        body
      })
    )
  const customerOf = Effect.fnUntraced(function* (name: string) {
    const known = customers.get(name)
    if (known !== undefined) return known
    const code = codeOf(name)
    const { id } = yield* client.customers.create({ payload: { name, code, email: `office@${code}.example.com` } })
    customers.set(name, id)
    return id
  })
  return { client, offers, pick, chance, random, use, customerOf }
})

type Tools = Effect.Success<ReturnType<typeof makeTools>>

let sales = 0

/** Sells a license: an order, often with a subscription, then the license and its first device. */
const sell = Effect.fnUntraced(function* (tools: Tools, now: number, offer: Offered, customer: string) {
  const { chance, client, customerOf, pick, use } = tools
  const number = ++sales
  const customer_id = yield* customerOf(customer)
  const ends = offer.days === undefined ? {} : { expires_at: now + offer.days * dayMillis }
  const bought = { external_system: "stripe", external_id: `in_${4_100 + number}`, customer_id }
  const params = { id: offer.product }
  const isTrial = offer.license_type === "trial"
  const order = isTrial
    ? undefined
    : yield* client.commerce.createOrder({ params, payload: { ...bought, status: chance(0.9) ? "fulfilled" : "paid" } })
  const { license, license_key } = yield* client.licenses.create({
    payload: {
      product_id: offer.product,
      policy_id: offer.policy,
      customer_id,
      customer_name: customer,
      customer_email: `office@${codeOf(customer)}.example.com`,
      ...(order && { order_id: order.id }),
      ...ends
    }
  })
  const sold: Sold = { id: license.id, key: license_key, offer, binding: `machine-${number}` }
  const metered = offer.features.at(-1)!
  if (!isTrial && chance(0.6)) {
    yield* client.licenses.assignFeature({
      params: { id: sold.id },
      payload: { feature_id: metered.id, max_consumptions: pick([500, 1_000, 5_000]) }
    })
  }
  yield* use(sold, "activate", deviceOf(tools, sold.binding))
  return sold
})

const deviceOf = ({ pick, random }: Tools, fingerprint: string) => ({
  fingerprint,
  hostname: `${pick(machines)}-${10 + Math.floor(random() * 90)}`,
  os: pick(systems)
})

/** What applications of a customer do in a while. */
const useLicense = Effect.fnUntraced(function* (tools: Tools, sold: Sold, step: number) {
  const { chance, pick, random, use } = tools
  const { binding: fingerprint, offer } = sold
  yield* use(sold, "validate", { fingerprint })
  if (chance(0.2)) yield* use(sold, "activate", deviceOf(tools, `${fingerprint}-${Math.floor(random() * 6)}`))
  if (chance(0.1)) yield* use(sold, "validate", { fingerprint: "a copied disk" })
  if (chance(0.5)) {
    const feature_code = offer.features.at(-1)!.code
    const amount = pick([5, 20, 60, 150])
    yield* use(sold, "consume", { fingerprint, feature_code, amount, event_id: `${sold.id}-${step}` })
  }
})

/** What the back office does: renewals, refunds, chargebacks. */
const administer = Effect.fnUntraced(function* ({ chance, client }: Tools, { id, offer }: Sold, step: number) {
  const params = { id }
  const renewable = offer.days !== undefined && offer.license_type !== "consumption"
  if (renewable && chance(0.4)) {
    const headers = { "idempotency-key": `renewal-${id}-${step}` }
    return yield* Effect.ignore(client.licenses.renew({ params, headers, payload: { extend_by_days: offer.days } }))
  }
  if (chance(0.25)) return yield* Effect.ignore(client.licenses.suspend({ params }))
  if (chance(0.2)) return yield* Effect.ignore(client.licenses.revoke({ params }))
})

/** The license on the pictures: a team with devices, quotas, and a history. */
const showpiece = Effect.fnUntraced(function* (tools: Tools, now: number) {
  const [offer] = tools.offers
  const sold = yield* sell(tools, now, offer!, "Ada Lovelace")
  const params = { id: sold.id }
  yield* tools.client.licenses.assignFeature({
    params,
    payload: { feature_id: offer!.features.at(-1)!.id, max_consumptions: 10_000 }
  })
  for (const name of ownMachines)
    yield* tools.use(sold, "activate", { fingerprint: name, hostname: name, os: "Debian 13" })
  return sold
})

const ownMachines = ["ada-laptop", "ada-desk", "render-node-1"]

/** What happens to it: most of the time it is used as it should be. */
const useShowpiece = Effect.fnUntraced(function* (tools: Tools, sold: Sold, day: number) {
  const fingerprint = tools.pick([...ownMachines, sold.binding])
  yield* tools.use(sold, "validate", { fingerprint })
  const use = { fingerprint, feature_code: sold.offer.features.at(-1)!.code, amount: 40, event_id: `day-${day}` }
  yield* tools.use(sold, "consume", use)
  if (day % 30 === 28) yield* tools.use(sold, "validate", { fingerprint: "a copied disk" })
})

/** Lives through the half-year. `advance` moves the service's clock, which begins half a year ago and ends now. */
export const liveHalfYear = Effect.fnUntraced(function* (seed: number) {
  const { advance } = yield* TestServer
  const tools = yield* makeTools(seed)
  const begin = Date.now() - days * dayMillis
  const all: Array<Sold> = [yield* showpiece(tools, begin)]
  for (let day = 0; day < days; day += stepDays) {
    const now = begin + day * dayMillis
    const buyers = 1 + Math.floor(tools.random() * 4)
    for (let buyer = 0; buyer < buyers; buyer++)
      all.push(yield* sell(tools, now, tools.pick(tools.offers), tools.pick(customerNames)))
    const others = all.slice(1)
    yield* useShowpiece(tools, all[0]!, day)
    for (let used = 0; used < 6; used++) yield* useLicense(tools, tools.pick(others), day)
    yield* administer(tools, tools.pick(others), day)
    yield* advance(stepDays * daySeconds)
  }
  const params = { id: all[0]!.id }
  yield* tools.client.licenses.suspend({ params })
  yield* tools.client.licenses.reinstate({ params })
  for (const fingerprint of ["ada-tablet", "linus-desk", "grace-laptop"])
    yield* tools.use(all[0]!, "floating/checkout", { fingerprint, hostname: fingerprint })
  for (const fingerprint of ownMachines) yield* tools.use(all[0]!, "validate", { fingerprint })
})
