/**
 * A small Stripe: the parts of its API that docs/guides/stripe.md reads, with the state of customers, subscriptions and payments.
 * A change leaves an event, as Stripe sends it; the shapes are those of its documentation.
 */
import { createHmac } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"
import { Effect } from "effect"

export const secret = "whsec_of_the_test"
export const stripeKey = "sk_test_of_the_test"
export const daySeconds = 86_400

export const sign = (text: string, at = Math.floor(Date.now() / 1_000), key = secret) =>
  `t=${at},v1=${createHmac("sha256", key).update(`${at}.${text}`).digest("hex")},v0=unused`

export interface Price {
  readonly id: string
  readonly metadata: Readonly<Record<string, string>>
}

export interface Line {
  readonly price: Price
  readonly quantity: number
}

export interface StripeEvent {
  readonly id: string
  readonly type: string
  readonly data: { readonly object: object }
}

interface Customer {
  readonly id: string
  readonly email: string
  readonly name: string
  isDeleted: boolean
}

interface Period {
  readonly start: number
  readonly end: number
}

export interface StripeSubscription {
  readonly id: string
  readonly customer: Customer
  status: string
  start: number
  end: number
  isCollectionPaused: boolean
  cancelAtPeriodEnd: boolean
  lines: ReadonlyArray<Line>
}

export interface Payment {
  readonly id: string
  readonly customer: Customer
  /** Of an invoice, with the periods of its lines. */
  readonly subscription?: StripeSubscription
  readonly periods?: ReadonlyArray<Period>
  /** Of a checkout without subscription. */
  readonly lines?: ReadonlyArray<Line>
  refunded: number
  dispute: string | undefined
  /** Of a dispute before that one. */
  readonly earlierDispute?: string
}

const amount = 900
const list = (data: ReadonlyArray<object>) => ({ object: "list", has_more: false, data })

const lineOf = ({ price, quantity }: Line) => ({
  quantity,
  price: { object: "price", currency: "eur", unit_amount: amount, ...price }
})

const customerObject = ({ email, id, isDeleted, name }: Customer) =>
  isDeleted ? { id, object: "customer", deleted: true } : { id, object: "customer", email, name, metadata: {} }

const subscriptionObject = (given: StripeSubscription) => ({
  id: given.id,
  object: "subscription",
  customer: given.customer.id,
  status: given.status,
  cancel_at_period_end: given.cancelAtPeriodEnd,
  canceled_at: given.status === "canceled" ? given.start + 1 : null,
  ended_at: given.status === "canceled" ? given.start + 2 : null,
  pause_collection: given.isCollectionPaused ? { behavior: "void", resumes_at: null } : null,
  items: list(
    // Add-ons come first, so that the licensed item is not found by its place.
    given.lines.toReversed().map((line, index) => ({
      id: `si_${given.id}_${index}`,
      object: "subscription_item",
      current_period_start: given.start,
      current_period_end: given.end,
      ...lineOf(line)
    }))
  ),
  metadata: {}
})

const chargeObject = ({ customer, dispute, id, refunded }: Payment) => ({
  id: id.replace("pi_", "ch_"),
  object: "charge",
  amount,
  amount_captured: amount,
  amount_refunded: refunded,
  refunded: refunded === amount,
  disputed: dispute !== undefined,
  customer: customer.id,
  payment_intent: id,
  currency: "eur"
})

const disputeObject = ({ dispute, id }: Payment) => ({
  id: id.replace("pi_", "du_"),
  object: "dispute",
  amount,
  charge: id.replace("pi_", "ch_"),
  payment_intent: id,
  currency: "eur",
  reason: "fraudulent",
  status: dispute
})

/** The newest is the first. */
const disputesOf = (payment: Payment | undefined) =>
  [payment?.dispute, payment?.earlierDispute].filter((dispute) => dispute !== undefined)

const invoiceObject = ({ id, periods = [], subscription }: Payment) => ({
  id: id.replace("pi_", "in_"),
  object: "invoice",
  parent: {
    type: "subscription_details",
    quote_details: null,
    subscription_details: { subscription: subscription?.id }
  },
  lines: list(periods.map((period) => ({ object: "line_item", period })))
})

const sessionObject = (customer: Customer, more: object) => ({
  id: `cs_test_${customer.id}`,
  object: "checkout.session",
  customer: customer.id,
  customer_details: { email: customer.email, name: customer.name },
  currency: "eur",
  payment_status: "paid",
  status: "complete",
  payment_intent: null,
  subscription: null,
  ...more
})

export class StripeFake {
  readonly subscriptions = new Map<string, StripeSubscription>()
  readonly payments = new Map<string, Payment>()
  /** Checkouts without payment, as they are read. */
  private readonly sessions = new Map<string, object>()
  /** The events of meters, by identifier. */
  readonly meterEvents = new Map<string, Record<string, string>>()
  meterRequests = 0
  private events = 0

  customer(name: string): Customer {
    return { id: `cus_${name}`, email: `${name}@example.com`, name: `Buyer ${name}`, isDeleted: false }
  }

  private event(type: string, object: object): StripeEvent {
    const id = `evt_${++this.events}`
    const created = Math.floor(Date.now() / 1_000)
    const rest = { object: "event", api_version: "2025-03-31.basil", created, livemode: false, pending_webhooks: 1 }
    return { id, ...rest, type, data: { object: structuredClone(object) } } as StripeEvent
  }

  /** A change of a subscription, with its event. */
  change(subscription: StripeSubscription, verb: string, changes: Partial<StripeSubscription>): StripeEvent {
    this.subscriptions.set(subscription.id, Object.assign(subscription, changes))
    return this.event(`customer.subscription.${verb}`, subscriptionObject(subscription))
  }

  checkedOut({ customer, id }: StripeSubscription): StripeEvent {
    return this.event("checkout.session.completed", sessionObject(customer, { mode: "subscription", subscription: id }))
  }

  bought(payment: Payment): StripeEvent {
    this.payments.set(payment.id, payment)
    const session = sessionObject(payment.customer, { mode: "payment", payment_intent: payment.id })
    return this.event("checkout.session.completed", session)
  }

  /** A checkout without payment, with its event. */
  free(customer: Customer, lines: ReadonlyArray<Line>, payment_status = "no_payment_required"): StripeEvent {
    const session = sessionObject(customer, { mode: "payment", payment_status })
    const expanded = { customer: customerObject(customer), line_items: list(lines.map(lineOf)) }
    this.sessions.set(session.id, { ...session, ...expanded })
    return this.event("checkout.session.completed", session)
  }

  refund(payment: Payment, refunded: number): StripeEvent {
    payment.refunded = refunded
    return this.event("charge.refunded", chargeObject(payment))
  }

  dispute(payment: Payment, dispute: string): StripeEvent {
    const verb =
      payment.dispute === undefined ? "created" : dispute === "won" || dispute === "lost" ? "closed" : "updated"
    payment.dispute = dispute
    return this.event(`charge.dispute.${verb}`, disputeObject(payment))
  }

  other(type: string, object: object): StripeEvent {
    return this.event(type, object)
  }

  /** The answer to a request; undefined is 404. */
  private answer(url: URL): object | undefined {
    const [, resource = "", id = ""] = /^\/v1\/(.*?)(?:\/([^/]*_[^/]*))?$/.exec(url.pathname) ?? []
    const payment = this.payments.get(
      url.searchParams.get("payment_intent") ?? url.searchParams.get("payment[payment_intent]") ?? id
    )
    const subscription = this.subscriptions.get(id)
    switch (resource) {
      case "subscriptions":
        return subscription && { ...subscriptionObject(subscription), customer: customerObject(subscription.customer) }
      case "payment_intents":
        return payment && { ...paymentObject(payment), latest_charge: chargeObject(payment) }
      case "disputes":
        return list(disputesOf(payment).map((dispute) => disputeObject({ ...payment!, dispute })))
      case "invoice_payments":
        return list(
          payment?.subscription === undefined ? [] : [{ object: "invoice_payment", invoice: invoiceObject(payment) }]
        )
      case "checkout/sessions": {
        if (id !== "") return this.sessions.get(id)
        if (payment?.lines === undefined) return list([])
        const more = { customer: customerObject(payment.customer), line_items: list(payment.lines.map(lineOf)) }
        return list([{ ...sessionObject(payment.customer, { mode: "payment", payment_intent: payment.id }), ...more }])
      }
      default:
        return undefined
    }
  }

  private meter(form: URLSearchParams): object {
    const event = Object.fromEntries(form)
    this.meterRequests++
    this.meterEvents.set(event["identifier"] ?? "", event)
    return { object: "billing.meter_event", ...event }
  }

  /** Serves the API until the scope ends. */
  readonly serve = Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly close: () => void }>((resume) => {
      const server = createServer(async (request, response) => {
        const url = new URL(request.url ?? "/", "http://stripe")
        const form = new URLSearchParams(await bodyOf(request))
        const isKnown = request.headers.authorization === `Bearer ${stripeKey}`
        const isMeter = url.pathname === "/v1/billing/meter_events"
        const found = isMeter ? this.meter(form) : this.answer(url)
        const status = isKnown ? (found === undefined ? 404 : 200) : 401
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(found ?? { error: {} }))
      }).listen(0, "127.0.0.1", () => {
        const { port } = server.address() as { readonly port: number }
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, close: () => void server.close() }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )
}

const paymentObject = ({ customer, id }: Payment) => ({
  id,
  object: "payment_intent",
  amount,
  currency: "eur",
  status: "succeeded",
  customer: customer.id
})

export const bodyOf = async (request: IncomingMessage): Promise<string> =>
  Buffer.concat((await Array.fromAsync(request)) as Array<Buffer>).toString()
