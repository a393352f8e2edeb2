/** Many changes: how many at a time, what happens at a rate limit, what is repeated and under which key, and how a run is stopped. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { Call } from "../../../../src/clients/client/Call.ts"
import { Client } from "../../../../src/clients/client/Client.ts"
import { type Progress, runBatch } from "../../../../src/clients/console/batch/BatchRun.ts"
import { csvOf } from "../../../../src/clients/console/batch/LicenseFile.ts"
import { refuse } from "../../../../src/contract/api/Failure.ts"

const changes = (count: number) => Array.from({ length: count }, (_, item) => ({ item }))

const neverAborted = new AbortController().signal

interface Sending {
  readonly count?: number
  readonly signal?: AbortSignal
  readonly report?: (progress: Progress<number, unknown>) => void
  readonly send: (item: number, idempotencyKey: string) => Effect.Effect<unknown, unknown>
}

const run = ({ count = 20, report = () => {}, send, signal = neverAborted }: Sending) =>
  runBatch<number, unknown>({
    attempts: changes(count),
    signal,
    report,
    send: (item) => Effect.flatMap(Call, ({ idempotencyKey = "" }) => send(item, idempotencyKey))
  }).pipe(Effect.provideService(Client, {} as never))

const limited = refuse("RATE_LIMITED", "Too many requests.")

/** The service's response, as far as a run looks at it. */
const responses = (status: number, headers: Record<string, string>) =>
  Effect.provideService(FetchHttpClient.Fetch, () => Promise.resolve(new Response(null, { status, headers })))

const receive = Effect.flatMap(FetchHttpClient.Fetch, (fetch) => Effect.promise(() => fetch("http://127.0.0.1/")))

describe("A run of many changes", () => {
  it.effect("sends at most four at a time, and each once", () =>
    Effect.gen(function* () {
      let open = 0
      let most = 0
      const sent: Array<number> = []
      const { failed, succeeded } = yield* run({
        send: (item) =>
          Effect.gen(function* () {
            most = Math.max(most, ++open)
            sent.push(item)
            yield* Effect.yieldNow
            open--
          })
      })
      assert.strictEqual(most, 4)
      assert.deepStrictEqual(
        sent.toSorted((one, other) => one - other),
        [...Array(20).keys()]
      )
      assert.deepStrictEqual([succeeded.length, failed.length], [20, 0])
    })
  )

  it.effect("waits for as long as the service says, all of it, and then goes on under the same keys", () =>
    Effect.gen(function* () {
      let isOpen = false
      let refused = 0
      const keys = new Map<number, Set<string>>()
      const waits: Array<number | undefined> = []
      const fiber = yield* Effect.forkChild(
        run({
          report: ({ waitsUntil }) => waits.push(waitsUntil),
          send: Effect.fnUntraced(function* (item, key) {
            keys.set(item, (keys.get(item) ?? new Set()).add(key))
            yield* receive
            if (isOpen) return item
            refused++
            return yield* limited
          })
        }).pipe(responses(429, { "retry-after": "7" }))
      )
      yield* TestClock.adjust("6 seconds")
      assert.strictEqual(refused, 4)
      assert.deepStrictEqual(new Set(waits), new Set([7_000]))
      isOpen = true
      yield* TestClock.adjust("1 second")
      const { failed, succeeded } = yield* Fiber.join(fiber)
      assert.deepStrictEqual([succeeded.length, failed.length, refused], [20, 0, 4])
      for (const each of keys.values()) assert.strictEqual(each.size, 1)
    })
  )

  it.effect("goes on after a refusal, and tells each with its cause", () =>
    Effect.gen(function* () {
      const { failed, succeeded } = yield* run({
        send: (item) => (item % 5 === 0 ? refuse("LICENSE_STATE_CONFLICT", "It is revoked.") : Effect.succeed(item))
      })
      assert.strictEqual(succeeded.length, 16)
      assert.deepStrictEqual(
        failed.map(({ item }) => item).toSorted((one, other) => one - other),
        [0, 5, 10, 15]
      )
      // A refusal is stored under its key.
      assert.isTrue(failed.every(({ idempotencyKey }) => idempotencyKey === undefined))
    })
  )

  it.effect("repeats what got no response under its key, and gives the key back if none ever comes", () =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const fiber = yield* Effect.forkChild(
        run({
          count: 1,
          send: (_, key) => {
            keys.push(key)
            return Effect.fail("no response")
          }
        })
      )
      yield* TestClock.adjust("10 seconds")
      const { failed } = yield* Fiber.join(fiber)
      assert.strictEqual(keys.length, 3)
      assert.strictEqual(new Set(keys).size, 1)
      assert.strictEqual(failed[0]?.idempotencyKey, keys[0])
    })
  )

  it.effect("is stopped: what is being sent is awaited, nothing else is sent", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const answer = yield* Deferred.make<void>()
      const begun = yield* Deferred.make<void>()
      let sent = 0
      const fiber = yield* Effect.forkChild(
        run({
          signal: controller.signal,
          send: Effect.fnUntraced(function* () {
            if (++sent === 4) yield* Deferred.succeed(begun, undefined)
            yield* Deferred.await(answer)
          })
        })
      )
      yield* Deferred.await(begun)
      controller.abort()
      yield* Deferred.succeed(answer, undefined)
      const { failed, succeeded } = yield* Fiber.join(fiber)
      assert.deepStrictEqual([sent, succeeded.length, failed.length], [4, 4, 0])
    })
  )

  it.effect("is stopped while it waits for a rate limit", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const waiting = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        run({
          signal: controller.signal,
          report: ({ waitsUntil }) => {
            if (waitsUntil !== undefined) Deferred.doneUnsafe(waiting, Effect.void)
          },
          send: () => limited
        })
      )
      yield* Deferred.await(waiting)
      controller.abort()
      const { failed, succeeded } = yield* Fiber.join(fiber)
      assert.deepStrictEqual([succeeded.length, failed.length], [0, 0])
    })
  )
})

describe("A file of licenses", () => {
  it("has an apostrophe in front of a text that a spreadsheet takes as a formula", () => {
    const license = { id: "lic_1", status: "active", product_id: "prod_1", policy_id: "pol_1", created_at: 0 }
    const signs = ["=", "+", "-", "@", "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"]
    const names = [...signs, ...signs.map((sign) => `  ${sign}`), "\t", "\r"].map((start) => `${start}1`)
    const written = csvOf(names.map((customer_name) => ({ ...license, customer_name }) as never))
    const cells = written.split("\r\n").map((line) => line.split(",")[4]?.replaceAll('"', ""))
    assert.deepStrictEqual(cells, [...names.map((name) => `'${name}`), undefined])
  })
})
