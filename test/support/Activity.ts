/** Nodes of the service whose workers run when a test says so, and the feed as they show it. */
import { Context, Effect, Layer } from "effect"
import type { Activity } from "../../src/activities/Activity.ts"
import { EventTimeIndex } from "../../src/activities/EventTimeIndex.ts"
import { Refusals } from "../../src/activities/Refusals.ts"
import { Validations } from "../../src/runtime/Validations.ts"
import { TestServer } from "./TestServer.ts"

type Settings = Parameters<typeof TestServer.layerWith>[0]

/** What workers do for the feed and for the counts of validations. */
const work = Layer.mergeAll(Refusals.layer, EventTimeIndex.layer).pipe(Layer.provideMerge(Validations.layer))

/** A node on a database of its own. */
export const layerActive = (settings: Settings = {}) => work.pipe(Layer.provideMerge(TestServer.layerWith(settings)))

/** One more node on the database at hand, which stops with the scope. */
export const startNode = (settings: Settings = {}) =>
  Effect.map(Layer.build(Layer.fresh(work.pipe(Layer.provideMerge(TestServer.layerOver(settings))))), (context) => ({
    server: Context.get(context, TestServer),
    refusals: Context.get(context, Refusals),
    validations: Context.get(context, Validations)
  }))

interface Page {
  readonly data: ReadonlyArray<Wire>
  readonly page_info: { readonly next_cursor: number | null }
}

/** An activity as it is sent. */
export type Wire = Omit<Activity, "occurred_at"> & { readonly occurred_at: string }

export const ask = (query = "") =>
  Effect.flatMap(TestServer, ({ send }) => send({ path: `/api/v1/activities${query}` }))

/** All rows that a filter lets through, page by page. */
export const walk = Effect.fnUntraced(function* (
  filter: { readonly [name: string]: string | number } = {},
  limit = 200
) {
  const query = new URLSearchParams(
    Object.entries({ ...filter, limit }).map(([name, value]): [string, string] => [name, String(value)])
  )
  const rows: Array<Wire> = []
  let cursor: number | null = null
  do {
    const { json, status, text } = yield* ask(`?${query}${cursor === null ? "" : `&cursor=${cursor}`}`)
    if (status !== 200) return yield* Effect.die(new Error(text))
    const { data, page_info } = json as Page
    rows.push(...data)
    cursor = page_info.next_cursor
  } while (cursor !== null)
  return rows
})
