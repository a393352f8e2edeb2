import { assert, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { CurrentActor } from "../../../src/access/CurrentActor.ts"
import { RequestContext } from "../../../src/contract/api/RequestContext.ts"
import type { NewEvent } from "../../../src/ledger/events/Entry.ts"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Events } from "../../../src/ledger/events/Events.ts"
import { Foundations } from "../../support/database/Services.ts"

const Subject = Layer.provideMerge(Events.layer, Foundations)

const append = Effect.fnUntraced(function* (event: Partial<NewEvent>) {
  const log = yield* EventLog
  yield* log.append({
    event_type: "product.created",
    resource_type: "product",
    resource_id: "prod_1",
    metadata: {},
    ...event
  })
})

/** Appends the given number of events of one resource. */
const appendMany = (count: number, resource_id: string) => Effect.replicateEffect(append({ resource_id }), count)

layer(Subject)("Events", (it) => {
  it.effect("describes what happened, the actor, the address and the request", () =>
    Effect.gen(function* () {
      const events = yield* Events
      const now = yield* Clock.currentTimeMillis
      yield* append({
        event_type: "license.suspended",
        resource_type: "license",
        resource_id: "lic_1",
        metadata: { a: 1 }
      }).pipe(
        Effect.provideService(CurrentActor, { actor_type: "api_key", actor_id: "key_1" }),
        Effect.provideService(RequestContext, { requestId: "req_1", clientAddress: "203.0.113.9" })
      )
      yield* append({})
      const { items } = yield* events.list({ limit: 2 })
      const [latest, first] = items
      assert.deepStrictEqual(first, {
        sequence: (latest?.sequence ?? 0) - 1,
        event_type: "license.suspended",
        actor_type: "api_key",
        actor_id: "key_1",
        resource_type: "license",
        resource_id: "lic_1",
        ip_address: "203.0.113.9",
        metadata: { a: 1, request_id: "req_1" },
        created_at: now
      })
      assert.notProperty(latest, "ip_address")
    })
  )

  it.effect("returns only sequence numbers below the cursor, the newest first", () =>
    Effect.gen(function* () {
      const events = yield* Events
      yield* appendMany(5, "ordered")
      const { items } = yield* events.list({ resource_id: "ordered" })
      const sequences = items.map(({ sequence }) => sequence)
      assert.deepStrictEqual(
        sequences,
        sequences.toSorted((a, b) => b - a)
      )
      const [, second, ...lower] = sequences
      const after = yield* events.list({ resource_id: "ordered", cursor: second ?? 0 })
      assert.deepStrictEqual(
        after.items.map(({ sequence }) => sequence),
        lower
      )
      assert.deepStrictEqual(yield* events.list({ cursor: 1 }), { items: [] })
    })
  )

  it.effect("returns all events once while more are appended", () =>
    Effect.gen(function* () {
      const events = yield* Events
      yield* appendMany(7, "walked")
      const [newest] = (yield* events.list({ limit: 1 })).items
      const sequencesSeen: Array<number> = []
      let page = yield* events.list({ limit: 2 })
      for (;;) {
        sequencesSeen.push(...page.items.map(({ sequence }) => sequence))
        if (page.next === undefined) break
        yield* append({})
        page = yield* events.list({ limit: 2, cursor: page.next })
      }
      const count = newest?.sequence ?? 0
      assert.deepStrictEqual(
        sequencesSeen,
        Array.from({ length: count }, (_, index) => count - index)
      )
    })
  )

  it.effect("returns no next page when the events exactly fill the page", () =>
    Effect.gen(function* () {
      const events = yield* Events
      yield* appendMany(3, "exact")
      assert.isUndefined((yield* events.list({ resource_id: "exact", limit: 3 })).next)
      assert.isDefined((yield* events.list({ resource_id: "exact", limit: 2 })).next)
    })
  )

  it.effect("returns the events that match all filters", () =>
    Effect.gen(function* () {
      const events = yield* Events
      const asLicense = Effect.provideService(CurrentActor, { actor_type: "license", actor_id: "lic_f" } as const)
      yield* append({ event_type: "license.activated", resource_type: "license", resource_id: "lic_f" }).pipe(asLicense)
      yield* append({ event_type: "license.renewed", resource_type: "license", resource_id: "lic_f" })
      yield* append({ event_type: "device.reset", resource_type: "device", resource_id: "dev_f" })
      const typesOf = (filter: Parameters<typeof events.list>[0]) =>
        Effect.map(events.list(filter), ({ items }) => items.map(({ event_type }) => event_type))
      assert.deepStrictEqual(yield* typesOf({ event_type: "license.renewed" }), ["license.renewed"])
      assert.deepStrictEqual(yield* typesOf({ resource_type: "device" }), ["device.reset"])
      assert.deepStrictEqual(yield* typesOf({ resource_id: "lic_f" }), ["license.renewed", "license.activated"])
      assert.deepStrictEqual(yield* typesOf({ actor_type: "license" }), ["license.activated"])
      assert.deepStrictEqual(yield* typesOf({ resource_id: "lic_f", actor_type: "system" }), ["license.renewed"])
      assert.deepStrictEqual(yield* typesOf({ resource_id: "dev_f", event_type: "license.renewed" }), [])
      assert.deepStrictEqual(yield* typesOf({ event_type: "nothing.known" }), [])
    })
  )
})
