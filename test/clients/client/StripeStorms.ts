/** Random lives of customers at Stripe, and what must come of them, written from docs/guides/stripe.md. */
import type { RandomSource } from "../../simulation/requests/RandomSource.ts"
import { daySeconds, type Line, type Payment, type Price, type StripeEvent, type StripeFake } from "./StripeFake.ts"

const eventsOfStorm = 15

export interface Prices {
  readonly pro: Price
  readonly team: Price
  readonly exports: Price
  readonly reports: Price
  readonly once: Price
}

const isOpen = ({ dispute }: Payment) => dispute === "needs_response" || dispute === "under_review"

/** Refunds suspend in storms, so that they can be taken back by a new period. */
const standingOf = (isPaid: boolean, payments: ReadonlyArray<Payment>, since: number) => {
  if (payments.some(({ dispute }) => dispute === "lost")) return "revoked"
  const isRefunded = payments.some(({ period, refunded }) => refunded === 900 && (period?.end ?? since) >= since)
  return isPaid && !isRefunded && !payments.some(isOpen) ? "active" : "suspended"
}

export class Storm {
  private readonly stripe: StripeFake
  private readonly random: RandomSource
  private readonly prices: Prices
  readonly subscription
  readonly payments: Array<Payment> = []
  readonly purchase: Payment

  constructor(stripe: StripeFake, random: RandomSource, prices: Prices, name: string) {
    this.stripe = stripe
    this.random = random
    this.prices = prices
    const customer = stripe.customer(name)
    const start = Math.floor(Date.now() / 1_000) - daySeconds
    this.subscription = {
      ...{ id: `sub_${name}`, customer, status: "incomplete", start, end: start + 30 * daySeconds },
      ...{ isCollectionPaused: false, cancelAtPeriodEnd: false },
      lines: [{ price: prices.pro, quantity: 1 }] as ReadonlyArray<Line>
    }
    const lines = [{ price: prices.once, quantity: random.between(1, 3) }]
    this.purchase = { id: `pi_once${name}`, customer, lines, refunded: 0, dispute: undefined }
    this.pay()
  }

  /** The payment of the subscription's current period. */
  private pay(): void {
    const { customer, end, id, start } = this.subscription
    const payment: Payment = {
      ...{ id: `pi_${id}_${this.payments.length}`, customer, subscription: this.subscription },
      ...{ period: { start, end }, refunded: 0, dispute: undefined }
    }
    this.payments.push(payment)
    this.stripe.payments.set(payment.id, payment)
  }

  /** Deliveries to the program: each event at least once, late, repeated and in any order. */
  *deliveries(): Generator<StripeEvent> {
    const { random, stripe, subscription } = this
    const late: Array<StripeEvent> = []
    const steps = [
      () => stripe.change(subscription, "created", { status: random.pick(["incomplete", "trialing"]) }),
      () => stripe.checkedOut(subscription),
      () => stripe.bought(this.purchase)
    ]
    for (let made = 0; made < eventsOfStorm; made++) {
      late.push((steps[made] ?? (() => this.step()))())
      while (late.length > 0 && random.chance(0.4)) {
        const index = random.between(0, late.length - 1)
        yield late[index]!
        if (random.chance(0.8)) late.splice(index, 1)
      }
    }
    while (late.length > 0) {
      const index = random.between(0, late.length - 1)
      yield late[index]!
      if (random.chance(0.9)) late.splice(index, 1)
    }
  }

  private step(): StripeEvent {
    const { random, stripe, subscription } = this
    if (random.chance(0.3)) return this.moneyBack(random.pick([this.purchase, this.payments.at(-1)!]))
    if (subscription.status === "canceled") return stripe.other("invoice.paid", { id: "in_1", object: "invoice" })
    if (random.chance(0.05)) return stripe.change(subscription, "deleted", { status: "canceled" })
    return stripe.change(subscription, "updated", this.change())
  }

  /** Upgrades, downgrades, seats, add-ons, periods, trials, pauses and failed payments. */
  private change(): Partial<Storm["subscription"]> {
    const { prices, random, subscription } = this
    const [licensed, ...addOns] = subscription.lines
    switch (random.pick(["status", "status", "price", "seats", "add-on", "add-on", "renew", "pause", "cancel"])) {
      case "status":
        return { status: random.pick(["active", "active", "active", "trialing", "past_due", "unpaid"]) }
      case "price":
        return { lines: [{ ...licensed!, price: random.pick([prices.pro, prices.team]) }, ...addOns] }
      case "seats":
        return { lines: [{ ...licensed!, quantity: random.between(1, 9) }, ...addOns] }
      case "add-on": {
        const price = random.pick([prices.exports, prices.reports])
        const others = addOns.filter((line) => line.price !== price)
        const isTaken = others.length === addOns.length || random.chance(0.5)
        return { lines: [licensed!, ...others, ...(isTaken ? [{ price, quantity: random.between(1, 3) }] : [])] }
      }
      case "renew": {
        Object.assign(subscription, { start: subscription.end, end: subscription.end + 30 * daySeconds })
        this.pay()
        return { status: "active" }
      }
      case "pause":
        return { isCollectionPaused: !subscription.isCollectionPaused }
      default:
        return { cancelAtPeriodEnd: !subscription.cancelAtPeriodEnd }
    }
  }

  private moneyBack(payment: Payment): StripeEvent {
    const { random, stripe } = this
    if (isOpen(payment)) return stripe.dispute(payment, random.pick(["under_review", "won", "won", "lost"]))
    if (payment.dispute === undefined && random.chance(0.4)) return stripe.dispute(payment, "needs_response")
    return stripe.refund(payment, Math.max(payment.refunded, random.pick([100, 300, 900])))
  }

  /** What the service must have of the subscription and its license in the end. */
  get expected() {
    const { cancelAtPeriodEnd, end, isCollectionPaused, lines, status } = this.subscription
    const isPaused = isCollectionPaused && status === "active"
    const recorded = { incomplete: "paused", unpaid: "past_due" }[status] ?? (isPaused ? "paused" : status)
    const isPaid = recorded === "active" || recorded === "trialing"
    const { price, quantity } = lines.find((line) => line.price === this.prices.pro || line.price === this.prices.team)!
    const addOns = lines.filter((line) => line.price.metadata["licensing_feature"] !== undefined)
    return {
      subscription: { status: recorded, current_period_end: end * 1_000, cancel_at_period_end: cancelAtPeriodEnd },
      standing: standingOf(isPaid, this.payments, end),
      license: {
        policy_id: price.metadata["licensing_policy"],
        expires_at: end * 1_000,
        max_activations: price === this.prices.pro ? quantity : undefined,
        max_floating_users: price === this.prices.team ? quantity : undefined,
        features: Object.fromEntries(
          addOns.map((line) => {
            const { licensing_feature: feature, licensing_quota: quota } = line.price.metadata
            return [feature, quota === undefined ? undefined : Number(quota) * line.quantity]
          })
        )
      }
    }
  }

  /** The same of the one-time purchase. */
  get expectedPurchase() {
    const { dispute, lines, refunded } = this.purchase
    return {
      standing: standingOf(true, [this.purchase], 0),
      max_activations: lines![0]!.quantity,
      order: { status: refunded === 900 ? "refunded" : "paid", refunded, dispute: dispute ?? "none" }
    }
  }
}
