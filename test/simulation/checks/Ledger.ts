/**
 * What the ledger alone says of quotas: from its rows and events, without the model, follow the counts, credits and overage of
 * each assignment, that no quota is exceeded, that each period is closed once, and that each consumption is taken back once.
 */
import { isDeepStrictEqual } from "node:util"
import { parseTimestamp } from "../../../src/contract/api/Timestamp.ts"
import type { License } from "../model/Model.ts"
import { isOfSubscription, keptIn, type Usage, unused } from "../model/Periods.ts"
import type { Stored, StoredEvent, StoredUsage } from "./Rows.ts"
import { hold, show, violation } from "./Violation.ts"

/** The sums of a feature's rows: the count, and the parts of it, since the last end of a period or reset. */
interface Sums {
  readonly used: number
  readonly overage: number
  readonly credited: number
  /** Bought credits that are left, over all rows. */
  readonly extra: number
}

const nothing: Sums = { used: 0, overage: 0, credited: 0, extra: 0 }

const movements = ["consume", "reverse", "reset", "period_reset"]

const after = (sums: Sums, { action, amount, credits, overage }: StoredUsage): Sums => {
  const isEnd = action === "period_reset"
  const used = sums.used + (movements.includes(action) ? amount : 0)
  const isCounted = action === "consume" || action === "reverse"
  return {
    used,
    overage: isEnd ? 0 : sums.overage + (overage ?? 0),
    credited: isEnd || action === "reset" ? 0 : sums.credited - (isCounted ? (credits ?? 0) : 0),
    extra: sums.extra + (credits ?? 0)
  }
}

export class Ledger {
  private sums = new Map<string, Sums>()
  /** When the last closed period of a feature ended. */
  private ends = new Map<string, number>()
  private reversed = new Set<string>()

  copy(): Ledger {
    return Object.assign(new Ledger(), structuredClone({ ...this }))
  }

  check(stored: Stored): void {
    for (const row of stored.ledger) this.add(row)
    for (const license of stored.licenses.values()) {
      this.checkUsage(license)
      checkBoundaries(license, stored.catalog.subscriptions)
    }
    this.checkEnds(stored.events)
    checkReversals(stored)
    checkClosed(stored)
  }

  private add(row: StoredUsage): void {
    const { action, balance, feature, license, max, reverses, sequence } = row
    const of = `${license} ${feature}`
    const before = this.sums.get(of) ?? nothing
    const sums = after(before, row)
    hold(`${of}: the sum of its ledger at ${sequence} and the balance in the row`, sums.used, balance)
    // What is consumed beyond the quota is bought credits or overage.
    const ofQuota = ({ credited, overage, used }: Sums) => used - credited - overage
    if (action === "consume" && max !== null && ofQuota(sums) > Math.max(max, ofQuota(before)))
      violation(`${of}: ${ofQuota(sums)} of ${max} are used at ${sequence}`)
    if (Object.values(sums).some((amount) => amount < 0)) violation(`${of}: ${show(sums)} at ${sequence}`)
    if (reverses !== null) {
      if (this.reversed.has(`${of} ${reverses}`)) violation(`${of}: ${reverses} was taken back twice`)
      this.reversed.add(`${of} ${reverses}`)
    }
    this.sums.set(of, sums)
  }

  /** The sums equal the assignments; a feature that a policy took away keeps its usage. */
  private checkUsage(license: License): void {
    for (const [of, sums] of this.sums) {
      const [id, feature] = of.split(" ") as [string, string]
      if (id !== license.id) continue
      const usage: Usage = license.assignments.get(feature) ?? keptIn(license, feature) ?? unused
      const { credited, extra, overage, used } = usage
      const stored = { used, overage: overage ?? 0, credited: credited ?? 0, extra: extra ?? 0 }
      if (!isDeepStrictEqual(stored, sums)) violation(`${of}: the ledger says ${show(sums)}, the row ${show(stored)}`)
    }
  }

  /** The periods of an assignment end one after the other, each once. */
  private checkEnds(events: ReadonlyArray<StoredEvent>): void {
    for (const { metadata, resource, type } of events) {
      if (type === "license.policy_changed")
        for (const of of this.ends.keys()) if (of.startsWith(`${resource} `)) this.ends.delete(of)
      const of = `${resource} ${metadata["feature_id"]}`
      if (type === "license.feature_removed") this.ends.delete(of)
      if (type !== "usage.period_closed") continue
      const [start, end] = [
        parseTimestamp(String(metadata["period_start"]))!,
        parseTimestamp(String(metadata["period_end"]))!
      ]
      const last = this.ends.get(of) ?? Number.NEGATIVE_INFINITY
      if (start >= end || end <= last) violation(`${of}: a period was closed twice: ${show(metadata)}`)
      this.ends.set(of, end)
    }
  }
}

/** Each reversal has an event with the figures of its row. */
const checkReversals = ({ events, ledger }: Stored): void => {
  const told = events
    .filter(({ type }) => type === "usage.reversed")
    .map(({ metadata, resource }) => ({ license: resource, metadata: { ...metadata, feature_code: undefined } }))
  const rows = ledger
    .filter(({ action }) => action === "reverse")
    .map(({ amount, balance, credits, device, event_id, feature, license, max, overage, request, reverses }) => ({
      license,
      metadata: {
        feature_id: feature,
        amount: -amount,
        event_id,
        reverses,
        balance_after: balance,
        ...(max === null ? undefined : { max_after: max }),
        ...(credits === null ? undefined : { credits }),
        ...(overage === null ? undefined : { overage }),
        device_id: device,
        request_id: request,
        feature_code: undefined
      }
    }))
  if (!isDeepStrictEqual(told, rows)) violation(`reversals: ${show(rows)}, their events: ${show(told)}`)
}

/** Each end of a period is a row and an event, with the same figures, in the same order for each feature. */
const checkClosed = ({ events, ledger }: Stored): void => {
  const told = events
    .filter(({ type }) => type === "usage.period_closed")
    .map(({ metadata, resource }) => `${resource} ${metadata["feature_id"]} ${metadata["consumed"]}`)
  const rows = ledger
    .filter(({ action }) => action === "period_reset")
    .map(({ amount, feature, license }) => `${license} ${feature} ${0 - amount}`)
  if (!isDeepStrictEqual(told.toSorted(), rows.toSorted()))
    violation(`ends of periods in the ledger: ${show(rows)}, in events: ${show(told)}`)
}

/** The boundaries by subscription equal the period of the license's subscription, after edits of either. */
const checkBoundaries = (
  { assignments, id, subscription }: License,
  subscriptions: Stored["catalog"]["subscriptions"]
): void => {
  const { end = null, start = null } = subscriptions.get(subscription ?? "") ?? {}
  for (const [feature, one] of assignments) {
    if (isOfSubscription(one) && (one.from !== start || one.until !== end))
      violation(`${id} ${feature}: its periods are ${show(one)}, those of its subscription are ${show({ start, end })}`)
    if (one.period === null && (one.resets ?? one.start ?? one.from ?? one.rolled) !== null)
      violation(`${id} ${feature}: it has no periods, but ${show(one)}`)
  }
}
