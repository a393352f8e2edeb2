/** What clients ask for about usage: consumptions, reversals, and resets by hand. */
import type { Stored } from "../checks/Rows.ts"
import type { License } from "../model/Model.ts"
import type { RandomSource } from "./RandomSource.ts"

const unknown = "unheard-of"

export class UsageRequests {
  private readonly random: RandomSource
  private readonly nextEventId: () => string
  private readonly eventIds: Array<string> = []

  constructor(random: RandomSource, nextEventId: () => string) {
    this.random = random
    this.nextEventId = nextEventId
  }

  /** Mostly of a feature that the license has. */
  consumption({ assignments }: License, { catalog }: Stored) {
    const { random } = this
    const isNew = this.eventIds.length === 0 || random.chance(0.85)
    const event_id = isNew ? this.nextEventId() : random.pick(this.eventIds)
    if (isNew) this.eventIds.push(event_id)
    const assigned = Array.from(assignments.keys()).flatMap((id) => catalog.features.get(id) ?? [])
    const codes = assigned.length > 0 && random.chance(0.8) ? assigned : [...catalog.features.values(), "api"]
    const feature_code = random.chance(0.03) ? unknown : random.pick(codes)
    return { event_id, feature_code, amount: random.chance(0.01) ? Number.MAX_SAFE_INTEGER : random.between(1, 6) }
  }

  /** Mostly of a consumption that is part of its feature's count. */
  reversal({ counted, open }: License, { catalog }: Stored) {
    const { random } = this
    const counts = Array.from(open.values()).flatMap((events) => Array.from(events))
    const left = counts.flatMap(([id, takenBackBy]) => (takenBackBy === null || random.chance(0.1) ? [id] : []))
    const earlier = counted.size > 0 && random.chance(0.7) ? Array.from(counted.keys()) : this.eventIds
    const events = left.length > 0 && random.chance(0.8) ? left : earlier
    const reverses = events.length === 0 ? unknown : random.pick(events)
    const isNew = this.eventIds.length === 0 || random.chance(0.9)
    const event_id = isNew ? this.nextEventId() : random.pick(this.eventIds)
    if (isNew) this.eventIds.push(event_id)
    const code = catalog.features.get(counted.get(reverses)?.feature ?? "")
    const feature_code =
      code === undefined || random.chance(0.05) ? random.pick([...catalog.features.values(), "api"]) : code
    return { event_id, feature_code, amount: 1, reverses }
  }

  reset(feature_id: string, stored: Stored) {
    const { random } = this
    const byId = { feature_id }
    const byCode = { feature_code: random.pick([...stored.catalog.features.values(), unknown]) }
    const total = random.pick([{}, { reset_consumed: true }, { total_consumptions: random.pick([0, 3, 10]) }])
    return {
      ...random.pick([byId, byCode]),
      ...(random.chance(0.3) && { max_consumptions: random.pick([0, 5, 20]) }),
      ...(random.chance(0.4) && { add_credits: random.pick([1, 3, 10, 20, Number.MAX_SAFE_INTEGER]) }),
      ...total
    }
  }
}
