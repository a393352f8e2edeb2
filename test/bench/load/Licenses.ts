/**
 * The licenses that the load uses, each with three metered features and one active device, created over the management
 * API.
 */
import { Pool } from "undici"
import { type PublishedKey, type Verifier, verifierOf } from "../../support/http/Verifier.ts"
import { connect } from "./Connect.ts"

/** A license as its application knows it, and the totals of its responses so far. */
export interface Seat {
  readonly id: string
  readonly authorization: string
  readonly fingerprint: string
  /** Consumptions or further activations that were answered with 200. */
  counted: number
  /** Requests whose connection broke: they may have been counted or not. */
  unsure: number
}

export interface Management {
  /** The `data` of the response; throws unless it succeeded. */
  call<A>(path: string, body?: object, method?: "POST" | "PATCH" | "PUT"): Promise<A>
  readonly verify: Verifier
  /** Sends a runtime request and verifies its response. */
  runtime(path: string, seat: Pick<Seat, "authorization">, body: object): Promise<Record<string, unknown>>
}

/** Set-up uses a few connections of its own, which are not measured. */
const connections = 32

export const managementOf = async (base: string, token: string): Promise<Management> => {
  const pool = new Pool(base, { connections, connect })
  const send = async (path: string, authorization: string, body?: object, method = "POST") => {
    const { statusCode, body: answer } = await pool.request({
      path: `/api/v1${path}`,
      method: body === undefined ? "GET" : method,
      headers: { authorization, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) })
    })
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (statusCode >= 300) throw new Error(`${path} answered ${statusCode}: ${bytes}`)
    return bytes
  }
  const call: Management["call"] = async (path, body, method) =>
    JSON.parse((await send(path, `Bearer ${token}`, body, method)).toString()).data
  const verify = verifierOf(await call<ReadonlyArray<PublishedKey>>("/system/public-keys"))
  return { call, verify, runtime: async (path, seat, body) => verify(await send(path, seat.authorization, body)) }
}

/** Runs `work` for 0 to n - 1, `connections` at a time. */
export const each = async (n: number, work: (index: number) => Promise<void>): Promise<void> => {
  let next = 0
  const lane = async () => {
    while (next < n) await work(next++)
  }
  await Promise.all(Array.from({ length: Math.min(connections, n) }, lane))
}

const featureCodes = ["export", "render", "sync"]

/** The feature that the load consumes. */
export const consumedFeature = "export"

interface Created {
  readonly id: string
}

/**
 * Creates a product with the given number of licenses, each with the given number of floating seats, and with a period of the
 * consumed feature's quota if one is given. `run` keeps codes and fingerprints of several runs apart.
 */
export const makeSeats = async (
  { call, runtime }: Management,
  run: string,
  count: number,
  max_floating_users = 0,
  reset_period?: string
): Promise<Array<Seat>> => {
  const product = await call<Created>("/products", { name: `bench ${run}`, code: `bench-${run}` })
  const catalog = `/products/${product.id}`
  // No activation limit: the load activates one device after another.
  const rules = { name: "bench", code: "bench", license_type: "perpetual", max_activations: 0, max_floating_users }
  const policy = await call<Created>(`${catalog}/policies`, rules)
  const features: Array<Created> = []
  for (const code of featureCodes) features.push(await call(`${catalog}/features`, { name: code, code }))
  const seats: Array<Seat> = []
  await each(count, async (index) => {
    const { license, license_key } = await call<{ license: Created; license_key: string }>("/licenses", {
      product_id: product.id,
      policy_id: policy.id
    })
    for (const [position, feature] of features.entries()) {
      const period = featureCodes[position] === consumedFeature ? { reset_period } : {}
      const assignment = { feature_id: feature.id, max_consumptions: 1_000_000_000, ...period }
      await call(`/licenses/${license.id}/features`, assignment)
    }
    const fingerprint = `fp-${run}-${index}`
    const seat = { id: license.id, authorization: `License ${license_key}`, fingerprint, counted: 0, unsure: 0 }
    await runtime("/license/activate", seat, { fingerprint })
    seats.push(seat)
  })
  return seats
}
