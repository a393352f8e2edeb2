/**
 * The read half of the feed. Events and refused calls are merged by their place in it, a bounded look at a time: however rare what
 * a filter wants, an answer costs no more than its looks, and where it ends before the limit the next page begins there.
 */
import { Context, Effect, Layer } from "effect"
import { type Refusal, refuse } from "../api/Failure.ts"
import { limitDefault, type Page } from "../api/Paging.ts"
import { ReportsDatabase } from "../reports/model/ReportsDatabase.ts"
import type { Activity, ActivityFilter } from "./Activity.ts"
import { scanEvents } from "./EventScan.ts"
import { scanRefusals } from "./RefusalScan.ts"
import { resourceIdsOf, scanPeriod, sequenceRanges } from "./ScanRange.ts"

/** Rows that a look reads of each of the two sources: a few milliseconds. */
const rowsMax = 1_500
/** Looks for one page. */
const looksMax = 50

interface Asked extends ActivityFilter {
  readonly limit?: number
  /** Activities with lower sequence numbers are given. */
  readonly cursor?: number
}

export class Activities extends Context.Service<
  Activities,
  {
    /** The newest first. A page that is not full is not the last one while it names a next one. */
    list(asked: Asked): Effect.Effect<Page<Activity, number>, Refusal<"INVALID_QUERY">>
  }
>()("licensing/activities/Activities") {
  static readonly layer = Layer.effect(
    Activities,
    Effect.gen(function* () {
      const { snapshot, sql } = yield* ReportsDatabase

      const walk = Effect.fnUntraced(function* (filter: ActivityFilter, limit: number, cursor: number | undefined) {
        const keys = yield* resourceIdsOf(sql, filter)
        const stretches = yield* sequenceRanges(sql, scanPeriod(filter))
        const items: Array<Activity> = []
        let below = cursor
        for (let looks = 0; looks < looksMax && items.length <= limit && below !== 0; looks++) {
          // One row too many only tells that there is a next page.
          const wanted = limit + 1 - items.length
          // The first look is short: most filters let most rows through.
          const sought = { filter, keys, stretches, below, limit: wanted, rowsMax: looks === 0 ? wanted : rowsMax }
          const events = yield* scanEvents(sql, sought)
          const refusals = yield* scanRefusals(sql, sought)
          const floor = Math.max(events.floor, refusals.floor)
          const seen = [...events.rows, ...refusals.rows].filter(({ sequence }) => sequence >= floor)
          items.push(...seen.sort((a, b) => b.sequence - a.sequence).slice(0, wanted))
          below = floor
        }
        const next = items.length > limit ? items[limit - 1]!.sequence : below
        const page: Page<Activity, number> = { items: items.slice(0, limit), ...(next ? { next } : undefined) }
        return page
      })

      return Activities.of({
        list: Effect.fn("Activities.list")(function* ({ limit = limitDefault, cursor, ...filter }) {
          yield* contradictions(filter)
          return yield* snapshot(walk(filter, limit, cursor))
        })
      })
    })
  )
}

const contradictions = ({ from, result_class, status_code, to }: ActivityFilter) => {
  if (from !== undefined && to !== undefined && from >= to)
    return Effect.fail(refuse("INVALID_QUERY", "The period ends before it begins: let from be earlier than to.", "to"))
  return status_code !== undefined && result_class !== undefined && status_code < 400 !== (result_class === "succeeded")
    ? Effect.fail(
        refuse("INVALID_QUERY", "No call is answered like that: status_code contradicts result_class.", "status_code")
      )
    : Effect.void
}
