/** Random lives of customers at Stripe, and what must come of them, written from docs/guides/stripe.md. */
import type { RandomSource } from "../../simulation/requests/RandomSource.ts"
import { daySeconds, type Line, type Payment, type Price, type StripeEvent, type StripeFake } from "./StripeFake.ts"

const eventsOfStorm = 15

export interface Prices {
  readonly pro: Price
  readonly team: Price
  readonly exports: Price
  /** The same feature without a limit. */
  readonly allExports: Price
  readonly reports: Price
  readonly once: Price
}

/** Of each feature of the policy team. A rollover is at most the quota, so the smallest add-on has a smaller one. */
export const teamQuota = { max_consumptions: 500, reset_period: "month", rollover_max: 150, overage_max: 10 } as const

const isOpen = ({ dispute }: Payment) => dispute === "needs_response" || dispute === "under_review"

/** Refunds suspend in storms, so that they can be taken back by a new period. Its payment is the last one. */
const standingOf = (isPaid: boolean, payments: ReadonlyArray<Payment>) => {
  if (payments.some(({ dispute }) => dispute === "lost")) return "revoked"
  const isRefunded = payments.at(-1)?.refunded === 900
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

  /** The payment of the subscription's current period; its invoice may have other lines. */
  private pay(...others: NonNullable<Payment["periods"]>): void {
    const { customer, end, id, start } = this.subscription
    const payment: Payment = {
      ...{ id: `pi_${id}_${this.payments.length}`, customer, subscription: this.subscription },
      ...{ periods: [...others, { start, end }], refunded: 0, dispute: undefined }
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
    if (random.chance(0.3))
      return this.moneyBack(random.pick([this.purchase, this.payments.at(-1)!, random.pick(this.payments)]))
    if (subscription.status === "canceled") return stripe.other("invoice.paid", { id: "in_1", object: "invoice" })
    if (random.chance(0.02)) return stripe.change(subscription, "deleted", { status: "canceled" })
    return stripe.change(subscription, "updated", this.change())
  }

  /** Upgrades, downgrades, seats, add-ons, periods, trials, pauses and failed payments. */
  private change(): Partial<Storm["subscription"]> {
    const { random, subscription } = this
    switch (random.pick(["status", "lines", "lines", "lines", "period", "period", "period", "pause", "cancel"])) {
      case "status":
        return { status: random.pick(["active", "active", "active", "active", "trialing", "past_due", "unpaid"]) }
      case "lines":
        return { lines: this.changedLines() }
      case "period": {
        if (random.chance(0.5)) this.renew()
        else this.changeInterval()
        return { status: "active" }
      }
      case "pause":
        return { isCollectionPaused: !subscription.isCollectionPaused && random.chance(0.5) }
      default:
        return { cancelAtPeriodEnd: !subscription.cancelAtPeriodEnd }
    }
  }

  /** Also of quantity 0. */
  private changedLines(): ReadonlyArray<Line> {
    const { prices, random, subscription } = this
    const [licensed, ...addOns] = subscription.lines
    const change = random.pick(["price", "seats", "add-on", "add-on"])
    if (change === "price") return [{ ...licensed!, price: random.pick([prices.pro, prices.team]) }, ...addOns]
    if (change === "seats") return [{ ...licensed!, quantity: random.between(0, 6) }, ...addOns]
    const price = random.pick([prices.exports, prices.allExports, prices.reports])
    const others = addOns.filter((line) => featureOf(line) !== price.metadata["licensing_feature"])
    const isTaken = others.length === addOns.length || random.chance(0.7)
    return [licensed!, ...others, ...(isTaken ? [{ price, quantity: random.between(0, 3) }] : [])]
  }

  /** The invoice of a new period may bill the usage of the one before. */
  private renew(): void {
    const { end, start } = this.subscription
    Object.assign(this.subscription, { start: end, end: end + 30 * daySeconds })
    this.pay(...(this.random.chance(0.5) ? [{ start, end }] : []))
  }

  /** A new period begins within the one before, which may be a longer one. The invoice may credit the rest of that. */
  private changeInterval(): void {
    const { random, subscription } = this
    const { end } = subscription
    const start = subscription.start + random.between(1, 9) * daySeconds
    Object.assign(subscription, { start, end: start + random.pick([30, 365]) * daySeconds })
    this.pay(...(random.chance(0.5) ? [{ start, end }] : []))
  }

  private moneyBack(payment: Payment): StripeEvent {
    const { random, stripe } = this
    if (isOpen(payment)) return stripe.dispute(payment, random.pick(["under_review", "won", "won", "won", "lost"]))
    if (payment.dispute === undefined && random.chance(0.2)) return stripe.dispute(payment, "needs_response")
    return stripe.refund(payment, Math.max(payment.refunded, random.pick([100, 300, 900])))
  }

  /** What the service must have of the subscription and its license in the end. */
  get expected() {
    const { cancelAtPeriodEnd, end, isCollectionPaused, lines, status } = this.subscription
    const isPaused = isCollectionPaused && status === "active"
    const recorded = { incomplete: "paused", unpaid: "past_due" }[status] ?? (isPaused ? "paused" : status)
    const isPaid = recorded === "active" || recorded === "trialing"
    const { price, quantity } = lines.find((line) => line.price === this.prices.pro || line.price === this.prices.team)!
    const isTeam = price === this.prices.team
    return {
      isLicensed: quantity > 0,
      subscription: { status: recorded, current_period_end: end * 1_000, cancel_at_period_end: cancelAtPeriodEnd },
      standing: standingOf(isPaid && quantity > 0, this.payments),
      license: {
        policy_id: price.metadata["licensing_policy"],
        expires_at: end * 1_000,
        max_activations: isTeam ? undefined : quantity,
        max_floating_users: isTeam ? quantity : undefined,
        features: Object.fromEntries(
          lines
            .filter((line) => featureOf(line) !== undefined && line.quantity > 0)
            .map((line) => [featureOf(line), addOnQuota(line, isTeam)])
        )
      }
    }
  }

  /** The same of the one-time purchase. */
  get expectedPurchase() {
    const { dispute, lines, refunded } = this.purchase
    return {
      standing: standingOf(true, [this.purchase]),
      max_activations: lines![0]!.quantity,
      order: { status: refunded === 900 ? "refunded" : "paid", refunded, dispute: dispute ?? "none" }
    }
  }
}

const featureOf = ({ price }: Line): string | undefined => price.metadata["licensing_feature"]

const addOnQuota = ({ price, quantity }: Line, isTeam: boolean) => {
  if (price.metadata["licensing_quota"] === undefined) return {}
  const max_consumptions = Number(price.metadata["licensing_quota"]) * quantity
  const { overage_max, reset_period, rollover_max } = teamQuota
  const periods = { reset_period, overage_max, rollover_max: Math.min(rollover_max, max_consumptions) }
  return { max_consumptions, ...(isTeam ? periods : undefined) }
}
