/**
 * The feed under load: nodes record changes and refusals concurrently, and a reader sees every number once, in order,
 * none late.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Ref } from "effect"
import { SqlClient } from "effect/sql"
import {
  type ActivityJson,
  layerActivities,
  listActivities,
  requestActivities,
  startActivitiesNode
} from "../../support/http/Activities.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const nodes = 3
const licensesPerNode = 4
const rounds = 15

interface Page {
  readonly data: ReadonlyArray<ActivityJson>
  readonly page_info: { readonly next_cursor: number | null }
}

/** Follows the feed from its newest end and pages back to what it has seen; no number may be missing there by then. */
const follow = Effect.fnUntraced(function* (done: Ref.Ref<boolean>) {
  const rowsSeen: Array<ActivityJson> = []
  let reads = 0
  while (true) {
    const over = yield* Ref.get(done)
    const last = rowsSeen.at(-1)?.sequence ?? 0
    const newRows: Array<ActivityJson> = []
    let cursor: number | null = null
    do {
      const { json } = yield* requestActivities(`?limit=200${cursor === null ? "" : `&cursor=${cursor}`}`)
      const { data, page_info }: Page = json as Page
      newRows.push(...data.filter(({ sequence }) => sequence > last))
      cursor = (data.at(-1)?.sequence ?? 0) > last + 1 ? page_info.next_cursor : null
    } while (cursor !== null)
    rowsSeen.push(...newRows.reverse())
    if (newRows.length > 0) reads++
    if (over && newRows.length === 0) return { seen: rowsSeen, reads }
  }
})

layer(layerActivities(), { timeout: 120_000 })("The activities feed", (it) => {
  it.effect("shows the changes and refusals of three nodes to a reader that follows it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const done = yield* Ref.make(false)
      const before = (yield* listActivities()).length
      /**
       * The work of one node: it uses licenses with and without success, and writes refusals as often as possible.
       */
      const work = Effect.gen(function* () {
        const { refusals, server } = yield* startActivitiesNode()
        const use = Effect.gen(function* () {
          const { license_key } = yield* issue()
          const { runtime } = yield* server.connect({ licenseKey: license_key })
          yield* runtime.activate({ payload: { fingerprint: "m" } })
          for (let round = 0; round < rounds; round++) {
            yield* Effect.flip(runtime.validate({ payload: { fingerprint: `unknown-${round}` } }))
            yield* runtime.deactivate({ payload: { fingerprint: "m" } })
            yield* Effect.flip(runtime.deactivate({ payload: { fingerprint: "m" } }))
            yield* runtime.activate({ payload: { fingerprint: "m" } })
            // The worker of a node: no other one runs here, so this test triggers it while the nodes work.
            if (round % 3 === 0) yield* refusals.pass
          }
        })
        yield* Effect.all(
          Array.from({ length: licensesPerNode }, () => use),
          { concurrency: "unbounded" }
        )
      })
      const all = Effect.all(
        Array.from({ length: nodes }, () => Effect.scoped(work)),
        { concurrency: "unbounded" }
      )
      const [{ reads, seen: rowsSeen }] = yield* Effect.all([follow(done), Effect.andThen(all, Ref.set(done, true))], {
        concurrency: "unbounded"
      })
      const licenses = nodes * licensesPerNode
      const refused = licenses * rounds * 2
      assert.deepStrictEqual(
        rowsSeen.map(({ sequence }) => sequence),
        Array.from({ length: rowsSeen.length }, (_, index) => index + 1)
      )
      assert.isAbove(reads, 5, "the reader looked while others wrote")
      assert.strictEqual(rowsSeen.filter(({ result_class }) => result_class === "refused").length, refused)
      const [counter] = yield* sql<{ readonly last: number; readonly refusals_last: number }>`
        SELECT last, refusals_last FROM event_sequence`
      assert.deepStrictEqual(counter, { last: rowsSeen.length - refused, refusals_last: refused })
      assert.isAbove(rowsSeen.length, before + refused)
      const events = rowsSeen.flatMap(({ event_sequence }) => (event_sequence === undefined ? [] : [event_sequence]))
      assert.deepStrictEqual(
        events,
        Array.from({ length: counter!.last }, (_, index) => index + 1)
      )
      // The rows that a reader has seen are the rows of the whole feed afterwards, page by page.
      assert.deepStrictEqual((yield* listActivities()).toReversed(), rowsSeen)
    })
  )

  it.effect("writes all refusals before shutdown, and removes the record of the writer", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { client } = yield* TestServer
      const license = yield* issue()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { server } = yield* startActivitiesNode()
          const { runtime } = yield* server.connect({ licenseKey: license.license_key })
          for (let index = 0; index < 5; index++) {
            yield* Effect.flip(runtime.validate({ payload: { fingerprint: "unknown" } }))
          }
        })
      )
      const { items } = yield* client.activities.list({ query: { license_id: license.id, result_class: "refused" } })
      assert.strictEqual(items.length, 5)
      assert.isEmpty(yield* sql`SELECT FROM handovers`)
    })
  )
})
