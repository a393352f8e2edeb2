/** Events of Stripe, in the shape that its documentation gives, with their signature. */
import { createHmac } from "node:crypto"
import { Effect, Random } from "effect"

export const secret = "whsec_of_the_test"
export const daySeconds = 86_400

export const sign = (body: string, at = Math.floor(Date.now() / 1_000), key = secret) =>
  `t=${at},v1=${createHmac("sha256", key).update(`${at}.${body}`).digest("hex")},v0=unused`

interface Fact {
  readonly type: string
  /** Seconds after the first event. */
  readonly after: number
  readonly object: object
}

/** The events of one customer with one subscription. */
export const lifeOf = (name: string, begin: number, facts: ReadonlyArray<Fact>) =>
  facts.map(({ after, object, type }, index) => ({
    id: `evt_${name}${index}`,
    object: "event",
    api_version: "2025-03-31.basil",
    created: begin + after,
    data: { object },
    livemode: false,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    type
  }))

const checkout = (name: string, after: number, email: string): Fact => ({
  type: "checkout.session.completed",
  after,
  object: {
    id: `cs_test_${name}`,
    object: "checkout.session",
    mode: "subscription",
    customer: `cus_${name}`,
    customer_details: { email, name: `Buyer ${name}`, address: null, phone: null, tax_exempt: "none", tax_ids: [] },
    payment_status: "paid",
    status: "complete",
    subscription: `sub_${name}`
  }
})

interface Given {
  readonly status: string
  readonly start: number
  readonly end: number
  readonly price?: string
  readonly canceled_at?: number
  readonly oldShape?: boolean
}

export const subscription = (verb: string, name: string, after: number, given: Given): Fact => {
  const period = { current_period_start: given.start, current_period_end: given.end }
  return {
    type: `customer.subscription.${verb}`,
    after,
    object: {
      id: `sub_${name}`,
      object: "subscription",
      customer: `cus_${name}`,
      status: given.status,
      cancel_at_period_end: false,
      canceled_at: given.canceled_at ?? null,
      ...(given.oldShape === true ? period : undefined),
      items: {
        object: "list",
        data: [
          {
            id: `si_${name}`,
            object: "subscription_item",
            ...(given.oldShape === true ? undefined : period),
            price: { id: given.price ?? "price_pro", object: "price", currency: "eur", unit_amount: 900 },
            quantity: 1
          }
        ]
      },
      metadata: {}
    }
  }
}

/** Begins yesterday; the second period is paid, and the customer has moved to another price within it. */
export const renewed = (name: string) => {
  const begin = Math.floor(Date.now() / 1_000) - daySeconds
  const [first, second, third] = [begin + 2 * daySeconds, begin + 32 * daySeconds, begin + 62 * daySeconds]
  const one = { start: begin, end: first }
  const two = { start: first, end: second }
  return {
    end: third,
    events: lifeOf(name, begin, [
      // Stripe sends these three within one second.
      subscription("created", name, 0, { ...one, status: "incomplete" }),
      subscription("updated", name, 0, { ...one, status: "active", oldShape: true }),
      checkout(name, 0, `${name}@example.com`),
      subscription("updated", name, 10, { ...two, status: "active" }),
      subscription("updated", name, 20, { ...two, status: "past_due" }),
      subscription("updated", name, 30, { ...two, status: "active" }),
      subscription("updated", name, 40, { ...two, status: "active", price: "price_team" }),
      subscription("updated", name, 50, { start: second, end: third, status: "active", price: "price_team" })
    ])
  }
}

/** The same until the second payment fails; then it is canceled. */
export const ended = (name: string, last: "past_due" | "canceled") => {
  const { end, events } = renewed(name)
  const begin = events[0]!.created
  const final =
    last === "past_due"
      ? subscription("updated", name, 60, { start: begin, end, status: "past_due" })
      : subscription("deleted", name, 50, { start: begin, end, status: "canceled", canceled_at: begin + 50 })
  return { end, events: [...events, ...lifeOf(`${name}x`, begin, [final])] }
}

/** All events at least once, some twice, in an order that the seed decides. */
export const shuffled = Effect.fnUntraced(function* <A>(events: ReadonlyArray<A>) {
  const repeated = yield* Random.shuffle(events)
  return Array.from(yield* Random.shuffle([...events, ...Array.from(repeated).slice(0, 3)]))
})
