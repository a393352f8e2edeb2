/** The measured requests: reads, lists by every filter, and commands that change or add a license. */
import { Pool } from "undici"
import { operations as contract } from "../../contract/cases/Surface.ts"
import { connect } from "../load/Connect.ts"
import type { TurnSide } from "../load/Turns.ts"
import { hotProduct, perpetualPolicy } from "./scaleRows.ts"
import type { Sample } from "./scaleSample.ts"

interface Target {
  readonly base: string
  readonly token: string
  readonly sample: Sample
}

interface Outgoing {
  readonly path: string
  readonly body?: object
  readonly authorization?: string
}

/** A pseudo-random number from 0 to 1, the same in every run. */
const draw = () => {
  let state = 20_300_131
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

export const operationsOf = ({ base, sample, token }: Target, connections: number) => {
  const pool = new Pool(base, { connections, connect })
  const chance = draw()
  const one = <A>(rows: ReadonlyArray<A>): A => rows[Math.floor(chance() * rows.length)]!
  const send = async ({ authorization = `Bearer ${token}`, body, path }: Outgoing) => {
    const began = performance.now()
    const answer = await pool.request({
      path: `/api/v1${path}`,
      method: body === undefined ? "GET" : "POST",
      headers: { authorization, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) })
    })
    await answer.body.arrayBuffer()
    return { millis: performance.now() - began, right: answer.statusCode < 300 }
  }
  const asked: Make = (name, next) => ({
    name,
    run: async (requests) => {
      const latencies: Array<number> = []
      let [remaining, failed] = [requests, 0]
      const lane = async () => {
        while (remaining-- > 0) {
          const { millis, right } = await send(next())
          if (right) latencies.push(millis)
          else failed++
        }
      }
      await Promise.all(Array.from({ length: connections }, lane))
      return { latencies, failed }
    }
  })
  const operations = [
    asked("get license", () => ({ path: `/licenses/${one(sample.licenses)["id"]}` })),
    ...lists(sample, one, asked),
    ...changes(sample, one, asked)
  ]
  return { operations, close: () => pool.close() }
}

type One = <A>(rows: ReadonlyArray<A>) => A
type Make = (name: string, next: () => Outgoing) => TurnSide

const days = (count: number) => new Date(Date.now() + count * 86_400_000).toISOString()

/** A value of each filter of the license list, drawn again for every request. */
const filterValues = (
  { features, jobs, licenses, orders }: Sample,
  one: One
): Readonly<Record<string, () => string>> => ({
  product_id: () => one(licenses)["product_id"]!,
  policy_id: () => one(licenses)["policy_id"]!,
  customer_id: () => one(orders)["customer_id"]!,
  order_id: () => one(orders)["id"]!,
  subscription_id: () => one(orders)["subscription_id"]!,
  expires_before: () => days(-360),
  expires_after: () => days(725),
  feature_id: () => one(features)["id"]!,
  bulk_job_id: () => one(jobs)["id"]!,
  maintenance_expires_before: () => days(-300),
  maintenance_expires_after: () => days(665),
  license_key_last4: () => one(licenses)["license_key_last4"]!,
  q: () => one(licenses)["customer_name"]!.split(" ")[1]!,
  created_after: () => days(-30),
  created_before: () => days(-700),
  expand: () => "product,policy,customer",
  sort: () => one(["created_at", "expires_at", "-expires_at"]),
  include_total: () => "true",
  "metadata[plan]": () => one(["basic", "partner"])
})

/** Rows of a page: few enough that both databases fill it, so that the search is measured and not the output. */
const limit = 10

const states = ["active", "grace_period", "expired", "suspended", "revoked"]

const lists = (sample: Sample, one: One, asked: Make): ReadonlyArray<TurnSide> => {
  const values = filterValues(sample, one)
  const parameters = contract
    .find(({ id }) => id === "listLicenses")!
    .query.map(({ name }) => (name === "metadata" ? "metadata[plan]" : name))
  const filters = parameters.filter((name) => !["limit", "cursor", "status"].includes(name))
  const missing = filters.filter((name) => !(name in values))
  if (missing.length > 0) throw new Error(`scaleRequests.ts has no values for ${missing.join(", ")}`)
  return [
    asked("list licenses", () => ({ path: `/licenses?limit=${limit}` })),
    ...filters.map((name) =>
      asked(`list licenses by ${name}`, () => ({
        path: `/licenses?limit=${limit}&${name}=${encodeURIComponent(values[name]!())}`
      }))
    ),
    ...states.map((state) =>
      asked(`list licenses by status ${state}`, () => ({ path: `/licenses?limit=${limit}&status=${state}` }))
    ),
    asked("list devices of a license", () => ({
      path: `/licenses/${one(sample.licenses)["id"]}/devices?limit=${limit}`
    })),
    asked("search by key", () => ({ path: `/search?q=${one(sample.licenses)["key"]}` })),
    asked("search by fingerprint", () => ({ path: `/search?q=${one(sample.licenses)["fingerprint"]}` })),
    asked("search by name", () => ({ path: `/search?q=${one(sample.licenses)["customer_name"]!.split(" ")[1]}` })),
    asked("search by a text without a match", () => ({ path: "/search?q=nobody" })),
    asked("list all devices", () => ({ path: `/devices?limit=${limit}` })),
    asked("list all devices by hostname", () => ({ path: `/devices?limit=${limit}&hostname=host-700` })),
    asked("list all devices by fingerprint", () => ({
      path: `/devices?limit=${limit}&fingerprint=${one(sample.licenses)["fingerprint"]}`
    })),
    asked("list all devices by status", () => ({ path: `/devices?limit=${limit}&status=deactivated` })),
    asked("list customers by email", () => ({
      path: `/customers?limit=${limit}&email=${one(sample.customers)["email"]}`
    })),
    asked("list customers by name", () => ({ path: `/customers?limit=${limit}&sort=name` })),
    asked("list customers by metadata", () => ({ path: `/customers?limit=${limit}&metadata[seats]=7` })),
    asked("list orders by external_id", () => ({
      path: `/products/${hotProduct}/orders?limit=${limit}&external_id=${one(sample.orders)["external_id"]}`
    })),
    asked("overview of 30 days", () => ({ path: "/reports/overview" })),
    asked("overview of 30 days of a product", () => ({
      path: `/reports/overview?product_id=${one(sample.licenses)["product_id"]}`
    })),
    asked("attention", () => ({ path: "/reports/attention" })),
    asked("overview by hours of a week", () => ({ path: `/reports/overview?bucket=1h&from=${days(-7)}` })),
    asked("list events", () => ({ path: `/events?limit=${limit}` })),
    asked("list events by resource_id", () => ({
      path: `/events?limit=${limit}&resource_id=${one(sample.licenses)["id"]}`
    })),
    asked("list events by event_type", () => ({ path: `/events?limit=${limit}&event_type=customer.created` }))
  ]
}

let createdCount = 0

const changes = ({ licenses }: Sample, one: One, asked: Make): ReadonlyArray<TurnSide> => [
  asked("create license", () => ({
    path: "/licenses",
    body: { product_id: hotProduct, policy_id: perpetualPolicy, customer_email: `new${++createdCount}@example.com` }
  })),
  asked("activate", () => ({
    path: "/license/activate",
    authorization: `License ${one(licenses)["key"]}`,
    body: { fingerprint: `new-${++createdCount}` }
  })),
  asked("validate", () => {
    const { key, fingerprint } = one(licenses)
    return { path: "/license/validate", authorization: `License ${key}`, body: { fingerprint } }
  })
]
