/**
 * Merges events and refused calls by their number, in bounded scans, so a page has a bounded cost even for
 * a filter that matches few rows. If the scans end before the page is full, the next page continues there.
 */
import { Context, Effect, Layer } from "effect"
import { CurrentProducts } from "../../access/CurrentActor.ts"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { limitDefault, type Page } from "../../contract/api/Paging.ts"
import { ReportsDatabase } from "../reports/model/ReportsDatabase.ts"
import { refuseEmptyPeriod } from "../reports/model/RequestChecks.ts"
import type { Activity, ActivityFilter } from "./Activity.ts"
import { scanEvents } from "./EventScan.ts"
import { ownResourceIds } from "./OwnResources.ts"
import { scanRefusals } from "./RefusalScan.ts"
import { resourceIdsOf, scanPeriod, sequenceRanges } from "./ScanRange.ts"

/** Reading this many rows of each table takes a few milliseconds. */
const rowsMax = 1_500
const scansMax = 50

interface ActivityQuery extends ActivityFilter {
  readonly limit?: number
  /** Only activities with lower sequence numbers. */
  readonly cursor?: number
}

export class Activities extends Context.Service<
  Activities,
  {
    /** Newest first. A page that is not full is the last one only if it has no `next`. */
    list(query: ActivityQuery): Effect.Effect<Page<Activity, number>, Refusal<"INVALID_QUERY">>
  }
>()("licensing/insight/activities/Activities") {
  static readonly layer = Layer.effect(
    Activities,
    Effect.gen(function* () {
      const { snapshot, sql } = yield* ReportsDatabase

      const scan = Effect.fnUntraced(function* (filter: ActivityFilter, limit: number, cursor: number | undefined) {
        const products = yield* CurrentProducts
        const named = yield* resourceIdsOf(sql, filter)
        const resourceIds = named ?? (products === undefined ? undefined : yield* ownResourceIds(sql, products))
        const ranges = yield* sequenceRanges(sql, scanPeriod(filter))
        const items: Array<Activity> = []
        let below = cursor
        for (let scans = 0; scans < scansMax && items.length <= limit && below !== 0; scans++) {
          // The extra row shows whether there is a next page.
          const missing = limit + 1 - items.length
          // The first scan is short: most filters match most rows.
          const query = {
            filter,
            products,
            resourceIds,
            ranges,
            below,
            limit: missing,
            rowsMax: scans === 0 ? missing : rowsMax
          }
          const events = yield* scanEvents(sql, query)
          const refusals = yield* scanRefusals(sql, query)
          const floor = Math.max(events.floor, refusals.floor)
          const rows = [...events.rows, ...refusals.rows].filter(({ sequence }) => sequence >= floor)
          items.push(...rows.sort((a, b) => b.sequence - a.sequence).slice(0, missing))
          below = floor
        }
        const next = items.length > limit ? items[limit - 1]!.sequence : below
        const page: Page<Activity, number> = { items: items.slice(0, limit), ...(next ? { next } : undefined) }
        return page
      })

      return Activities.of({
        list: Effect.fn("Activities.list")(function* ({ limit = limitDefault, cursor, ...filter }) {
          yield* refuseContradictions(filter)
          return yield* snapshot(scan(filter, limit, cursor))
        })
      })
    })
  )
}

const refuseContradictions = (filter: ActivityFilter) => {
  const { result_class, status_code } = filter
  const empty = refuseEmptyPeriod(filter)
  if (empty !== undefined) return Effect.fail(empty)
  return status_code !== undefined && result_class !== undefined && status_code < 400 !== (result_class === "succeeded")
    ? Effect.fail(
        refuse(
          "INVALID_QUERY",
          "The status_code and the result_class exclude each other: leave one of them out.",
          "status_code"
        )
      )
    : Effect.void
}
