/** What operators see of the nodes, with two of them on one database. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { version } from "../../../src/contract/Version.ts"
import { Nodes } from "../../../src/insight/ops/Nodes.ts"
import { EventLog } from "../../../src/ledger/events/EventLog.ts"
import { Journal } from "../../../src/licensing/engine/Journal.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { Foundations } from "../../support/database/Services.ts"

const startNode = Effect.fnUntraced(function* (port?: number) {
  const scope = yield* Scope.make()
  const address = port === undefined ? {} : { cluster: true, clusterAddress: { host: "node.internal", port } }
  const built = yield* Layer.buildWithScope(
    Layer.fresh(
      Nodes.layer.pipe(
        Layer.provideMerge(Journal.layer),
        Layer.provide(EventLog.layer),
        Layer.provide(Settings.layerTest(address))
      )
    ),
    scope
  )
  const node = Context.get(built, Nodes)
  yield* node.pass
  return { ...node, epoch: Context.get(built, Journal).epoch, stop: Scope.close(scope, Exit.void) }
})

layer(Foundations)("Nodes", (it) => {
  it.effect("are listed while they give signs of life, and for an hour after they fell silent", () =>
    Effect.gen(function* () {
      const first = yield* startNode()
      yield* TestClock.adjust("1 minute")
      const second = yield* startNode()
      yield* first.pass
      const listed = Effect.map(first.list, ({ nodes }) => nodes)
      const [one, other] = yield* listed
      assert.deepInclude(one, { status: "running", version, epoch: first.epoch.current, started_at: 0 })
      assert.deepInclude(other, { status: "running", started_at: 60_000, last_heard_at: 60_000 })
      assert.isUndefined(one!.owned_shards)

      first.epoch.renew(first.epoch.current)
      yield* TestClock.adjust("21 seconds")
      yield* first.pass
      assert.deepStrictEqual(
        (yield* listed).map(({ epoch, status }) => [epoch, status]),
        [
          [first.epoch.current, "running"],
          [second.epoch.current, "silent"]
        ]
      )

      yield* TestClock.adjust("1 hour")
      yield* first.pass
      assert.deepStrictEqual(
        (yield* listed).map(({ id }) => id),
        [one!.id]
      )
      yield* first.stop
      yield* second.stop
    })
  )

  it.effect("share all shards, and one that stops leaves its own to the others", () =>
    Effect.gen(function* () {
      const nodes = yield* Effect.forEach([8081, 8082, 8083], startNode)
      const owned = Effect.map(nodes[0]!.list, ({ nodes }) => nodes.map(({ owned_shards = 0 }) => owned_shards))
      const shares = yield* owned
      assert.lengthOf(shares, 3)
      assert.isAbove(Math.min(...shares), 0)
      assert.strictEqual(
        shares.reduce((sum, share) => sum + share),
        256
      )
      yield* nodes[2]!.stop
      const after = yield* owned
      assert.lengthOf(after, 2)
      assert.strictEqual(after[0]! + after[1]!, 256)
      yield* Effect.forEach(nodes.slice(0, 2), ({ stop }) => stop)
    })
  )
})
