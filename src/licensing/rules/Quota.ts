/** What an amount uses up: the quota of the period first, then bought credits, then overage. */
import type { Quota, Usage } from "../model/Usage.ts"

type Balance = Pick<Quota, "max_consumptions" | "overage_max"> & Usage

/** The quota of the current period; undefined: unlimited. */
export const quotaOf = ({
  max_consumptions,
  rolled_over = 0
}: Pick<Balance, "max_consumptions" | "rolled_over">): number | undefined =>
  max_consumptions === undefined ? undefined : Math.min(max_consumptions + rolled_over, Number.MAX_SAFE_INTEGER)

/** The part of the quota that is used. */
export const quotaUsed = ({ total_consumptions, credits_used = 0, overage = 0 }: Balance): number =>
  total_consumptions - credits_used - overage

/** What is left of the quota; undefined: unlimited. */
export const remainingOf = (balance: Balance): number | undefined => {
  const quota = quotaOf(balance)
  return quota === undefined ? undefined : Math.max(0, quota - quotaUsed(balance))
}

/** The largest amount that fits. */
export const amountMax = (balance: Balance): number => {
  const remaining = remainingOf(balance)
  const { extra_credits = 0, overage = 0, overage_max = 0 } = balance
  if (remaining === undefined || overage_max === -1) return Number.POSITIVE_INFINITY
  return remaining + extra_credits + Math.max(0, overage_max - overage)
}

/** The usage after a change, and by how much it changed bought credits and overage: absent if it did not. */
export interface UsageStep {
  readonly usage: Partial<Usage>
  readonly credits?: number
  readonly overage?: number
}

/** Counts an amount that fits. */
export const consumeAmount = (balance: Balance, amount: number): UsageStep => {
  const total_consumptions = balance.total_consumptions + amount
  const remaining = remainingOf(balance)
  if (remaining === undefined || amount <= remaining) return { usage: { total_consumptions } }
  const beyond = amount - remaining
  const credits = Math.min(beyond, balance.extra_credits ?? 0)
  return stepOf(balance, total_consumptions, credits, beyond - credits)
}

/**
 * Takes an amount back, in the reverse order of its use. So the result is the same as if it had never been consumed, also if
 * more was consumed since.
 */
export const takeBack = (balance: Balance, amount: number): UsageStep => {
  const overage = Math.min(amount, balance.overage ?? 0)
  const credits = Math.min(amount - overage, balance.credits_used ?? 0)
  return stepOf(balance, balance.total_consumptions - amount, -credits, -overage)
}

const stepOf = (balance: Balance, total_consumptions: number, credits: number, overage: number): UsageStep => ({
  usage: {
    total_consumptions,
    ...(credits === 0
      ? undefined
      : {
          credits_used: presentAmount((balance.credits_used ?? 0) + credits),
          extra_credits: presentAmount((balance.extra_credits ?? 0) - credits)
        }),
    ...(overage === 0 ? undefined : { overage: presentAmount((balance.overage ?? 0) + overage) })
  },
  ...(credits === 0 ? undefined : { credits: -credits }),
  ...(overage === 0 ? undefined : { overage })
})

/** An amount in a record: absent instead of 0. */
export const presentAmount = (amount: number): number | undefined => (amount === 0 ? undefined : amount)
