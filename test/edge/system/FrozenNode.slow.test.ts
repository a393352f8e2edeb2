/** A node that stops in the middle of its transactions, as SIGSTOP or a paused machine stops it, beside one that works. */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Ref } from "effect"
import { openSession } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database } from "../../support/database/Database.ts"
import type { Answer } from "../../support/http/Http.ts"
import { startService } from "../../support/processes/Processes.ts"
import { poll } from "../../support/rules/Poll.ts"

/** Rounds in which the frozen node held an open transaction. */
const heldRounds = 4
const roundsMax = 60
/** The promise is two seconds; the rest is for a busy machine. */
const disturbedMillisMax = 3_000

const dataOf = ({ json, status, text }: Answer) => {
  assert.include([200, 201], status, text)
  return (
    json as {
      readonly data: { readonly id: string; readonly license: { readonly id: string }; readonly license_key: string }
    }
  ).data
}

/** Two products, and four licenses of the first with a metered feature and an active device. */
const prepare = Effect.fnUntraced(function* (working: Effect.Success<ReturnType<typeof startService>>) {
  const product = dataOf(yield* working.manage("POST", "/products", { name: "P", code: "p" }))
  const other = dataOf(yield* working.manage("POST", "/products", { name: "Q", code: "q" }))
  const policy = dataOf(
    yield* working.manage("POST", `/products/${product.id}/policies`, {
      name: "P",
      code: "p",
      license_type: "perpetual"
    })
  )
  const feature = dataOf(yield* working.manage("POST", `/products/${product.id}/features`, { name: "F", code: "f" }))
  const licenses: Array<{ readonly id: string; readonly key: string }> = []
  for (let index = 0; index < 4; index++) {
    const body = { product_id: product.id, policy_id: policy.id }
    const { license, license_key } = dataOf(yield* working.manage("POST", "/licenses", body))
    yield* working.manage("POST", `/licenses/${license.id}/features`, { feature_id: feature.id })
    yield* working.call(license_key, "activate", { fingerprint: "m" })
    licenses.push({ id: license.id, key: license_key })
  }
  return { licenses, other, product }
})

layer(Database.layerUrl, { excludeTestServices: true, timeout: 240_000 })("A frozen node", (it) => {
  it.effect(
    "disturbs others for two seconds at most, and does no harm when it continues",
    () =>
      Effect.gen(function* () {
        const settings = { LICENSING_RATE_RUNTIME: "0", LICENSING_RATE_MANAGEMENT: "0", LICENSING_RATE_ACTIVATION: "0" }
        const [freezing, working] = [yield* startService(settings), yield* startService(settings)]
        const watcher = yield* openSession((yield* Database).url)
        const { licenses, other, product } = yield* prepare(working)
        const counted = yield* Ref.make(0)
        let events = 0
        const consume = (service: typeof working, index: number) =>
          Effect.tap(
            Effect.suspend(() =>
              service.call(licenses[index]!.key, "consume", {
                fingerprint: "m",
                feature_code: "f",
                event_id: `${++events}`
              })
            ),
            ({ status, text }) => {
              assert.include([200, 503], status, text)
              return Ref.update(counted, (count) => count + (status === 200 ? 1 : 0))
            }
          )
        const rename = (service: typeof working, id: string) =>
          Effect.tap(
            Effect.suspend(() => service.manage("PATCH", `/products/${id}`, { name: `P ${++events}` })),
            ({ status, text }) => Effect.sync(() => assert.include([200, 503], status, text))
          )
        const load = yield* Effect.forkChild(
          Effect.all(
            [0, 1, 2, 3, 4, 5].map((index) =>
              Effect.forever(index < 2 ? consume(freezing, index) : rename(freezing, product.id))
            ),
            { concurrency: "unbounded" }
          )
        )
        let held = 0
        for (let round = 0; held < heldRounds; round++) {
          assert.isBelow(round, roundsMax, "the frozen node never held a transaction")
          yield* freezing.signal("SIGSTOP")
          const [[open]] = (yield* watcher.values(
            "SELECT count(*)::int4 FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND backend_xid IS NOT NULL"
          )) as [[number]]
          if (open > 0) {
            held++
            const requests = [0, 1, 2, 3].map((index) => consume(working, index))
            const answers = yield* Effect.all([...requests, rename(working, other.id)].map(Effect.timed), {
              concurrency: "unbounded"
            })
            for (const [took, { status, text }] of answers) {
              assert.strictEqual(status, 200, text)
              assert.isBelow(Duration.toMillis(took), disturbedMillisMax)
            }
          }
          yield* freezing.signal("SIGCONT")
          yield* poll(rename(freezing, other.id), ({ status }) => status === 200)
        }
        yield* Fiber.interrupt(load)
        yield* working.stop
        yield* freezing.stop
        const [[consumed, ledger]] = (yield* watcher.values(
          "SELECT (SELECT sum(total_consumptions)::int4 FROM licenses), (SELECT count(*)::int4 FROM usage_ledger)"
        )) as [[number, number]]
        assert.strictEqual(consumed, ledger)
        // The last requests of the load were interrupted without an answer.
        assert.isAtLeast(consumed, yield* Ref.get(counted))
        assert.isAtMost(consumed, (yield* Ref.get(counted)) + 6)
        const [[gaps]] = (yield* watcher.values("SELECT max(sequence) - count(*) FROM events")) as [[number]]
        assert.strictEqual(Number(gaps), 0)
      }),
    240_000
  )
})
