/** Notices before expiry: each once for a license and date, and never too late to be useful. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { formatTimestamp } from "../../../src/contract/api/Timestamp.ts"
import { renew } from "../../../src/licensing/changes/Renewal.ts"
import { update } from "../../../src/licensing/changes/Update.ts"
import { reinstate, suspend } from "../../../src/licensing/rules/Lifecycle.ts"
import { Database } from "../../support/database/Database.ts"
import { fromNoon, leap, twoNodes } from "../../support/database/LicenseNodes.ts"
import { eventCounts, stored, storeOne } from "../../support/database/StoredLicenses.ts"
import { day, noon } from "../../support/rules/Licenses.ts"

const notices = Effect.fnUntraced(function* (licenseId: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ days: number; expires_at: string }>`
    SELECT (metadata ->> 'days_before')::int AS days, metadata ->> 'expires_at' AS expires_at FROM events
    WHERE event_type = 'license.expiring' AND resource_id = ${licenseId} ORDER BY sequence`
  return rows.map(({ days, expires_at }) => `${days} ${expires_at}`)
})

layer(Database.layer, { timeout: 60_000, excludeTestServices: true })("notices of expiry", (it) => {
  const expiry = noon + 10 * day
  const of = (days: number, date = expiry) => `${days} ${formatTimestamp(date)}`

  it.effect("are sent 7, 3 and 1 days before, each once, from any node", () =>
    fromNoon(
      Effect.gen(function* () {
        const { sweeps } = yield* twoNodes
        const license = yield* storeOne({ license: { expires_at: expiry } })
        const noticesByTime: Array<ReadonlyArray<string>> = []
        const revisions = new Set<number>()
        for (const elapsed of [0, 3 * day - 1, 1, day, 3 * day - 1, 1, 2 * day, day - 1, 1, day]) {
          yield* leap(elapsed)
          const passes = sweeps.map((node) => node.expiry)
          yield* Effect.all([...passes, ...passes], { concurrency: "unbounded" })
          noticesByTime.push(yield* notices(license.license))
          revisions.add((yield* stored(license.license)).revision)
        }
        const [none, seven, three, one] = [[], [of(7)], [of(7), of(3)], [of(7), of(3), of(1)]]
        assert.deepStrictEqual(noticesByTime, [none, none, seven, seven, seven, three, one, one, one, one])
        assert.deepStrictEqual(yield* eventCounts(license.license), { "license.expired": 1, "license.expiring": 3 })
        assert.strictEqual(revisions.size, 2)
      })
    )
  )

  it.effect("that became due during an outage are sent as the latest one only, and none after the expiry itself", () =>
    fromNoon(
      Effect.gen(function* () {
        const { sweeps } = yield* twoNodes
        const late = yield* storeOne({ license: { expires_at: expiry } })
        const afterOutage = yield* storeOne({ license: { expires_at: noon + 5 * day } })
        const short = yield* storeOne({ license: { expires_at: noon + 11 * day } })
        yield* leap(9 * day)
        yield* sweeps[0].expiry
        assert.deepStrictEqual(yield* notices(late.license), [of(1)])
        assert.deepStrictEqual(yield* notices(afterOutage.license), [])
        assert.deepStrictEqual(yield* notices(short.license), [of(3, noon + 11 * day)])
      })
    )
  )

  it.effect("follow the policy's reminder_days, also after an edit", () =>
    fromNoon(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { nodes, sweeps } = yield* twoNodes
        const license = yield* storeOne({ license: { expires_at: noon + 40 * day } })
        const remind = (days: string) => sql`
          UPDATE policies SET reminder_days = ${days}
          WHERE id = (SELECT policy_id FROM licenses WHERE id = ${license.license})`
        const pass = Effect.all([sweeps[0].expiry, sweeps[1].expiry], { concurrency: "unbounded" })
        yield* remind("{8,30,9,365}")
        yield* pass
        yield* pass
        yield* leap(31 * day)
        yield* pass
        const fortieth = noon + 40 * day
        const given = [of(365, fortieth), of(9, fortieth)]
        assert.deepStrictEqual(yield* notices(license.license), given)
        yield* leap(day)
        yield* remind("{20,8,7}")
        yield* pass
        yield* pass
        given.push(of(8, fortieth))
        assert.deepStrictEqual(yield* notices(license.license), given)
        yield* nodes[0].ask(license.license, renew, { extend_by_days: 12 })
        yield* pass
        yield* pass
        const renewed = noon + 52 * day
        assert.deepStrictEqual((yield* notices(license.license)).slice(3), [of(20, renewed)])
        yield* remind("{}")
        yield* leap(19 * day)
        yield* pass
        assert.lengthOf(yield* notices(license.license), 4)
      })
    )
  )

  it.effect("start again for a new date, and stop while a license is suspended", () =>
    fromNoon(
      Effect.gen(function* () {
        const { nodes, sweeps } = yield* twoNodes
        const license = yield* storeOne({ license: { expires_at: noon + 7 * day } })
        yield* sweeps[0].expiry
        yield* nodes[0].ask(license.license, renew, { extend_by_days: 30 })
        yield* sweeps[1].expiry
        const renewed = noon + 37 * day
        assert.deepStrictEqual(yield* notices(license.license), [of(7, noon + 7 * day)])
        yield* nodes[1].ask(license.license, suspend, undefined)
        yield* leap(31 * day)
        yield* sweeps[0].expiry
        assert.lengthOf(yield* notices(license.license), 1)
        yield* nodes[0].ask(license.license, reinstate, undefined)
        yield* sweeps[0].expiry
        assert.deepStrictEqual((yield* notices(license.license)).slice(1), [of(7, renewed)])
        yield* nodes[1].ask(license.license, update, { expires_at: noon + 33 * day })
        yield* sweeps[1].expiry
        yield* sweeps[0].expiry
        assert.deepStrictEqual((yield* notices(license.license)).slice(2), [of(3, noon + 33 * day)])
      })
    )
  )
})
