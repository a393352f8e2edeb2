/**
 * Several nodes, one owner per license: a node that does not own a license hands its commands over to the node that does, which has
 * the license in memory. Only an optimization: any node can decide any command at any time, and the fence of the journal keeps that
 * correct (docs/decisions/0028-license-owners.md).
 */
import { Clock, Effect, Exit, FiberSet, Layer, Schedule, Schema, Scope } from "effect"
import type { NodeAddress } from "../../platform/config/Setting.ts"
import { RequestTimeout } from "../../platform/postgres/driver/Deadline.ts"
import { MasterKey } from "../../platform/signing/MasterKey.ts"
import { clusterNodes } from "../../platform/telemetry/Metrics.ts"
import { Traces } from "../../platform/telemetry/Traces.ts"
import { Journal } from "../engine/Journal.ts"
import { LicenseActors } from "../engine/LicenseActors.ts"
import { join, keyOf, ownersOf, shardOf, storage } from "./Membership.ts"
import { listen } from "./NodeLink.ts"
import { makeOwner } from "./Owner.ts"
import { makePeer, type Peer } from "./Peer.ts"

/** The node cannot take part in a cluster; `message` is one line for the operator. */
class ClusterUnavailable extends Schema.TaggedError<ClusterUnavailable>()("ClusterUnavailable", {
  message: Schema.String
}) {}

/**
 * A license is handed to its owner for this long after another node was found to have changed it. A license that only one node uses,
 * because a balancer sends it there, is decided where it arrives, which is cheaper.
 */
const sharedMillis = 60_000

interface KnownPeer extends Peer {
  readonly scope: Scope.Closeable
}

const start = Effect.fnUntraced(function* (listenAt: NodeAddress, address: NodeAddress) {
  if ("Deno" in globalThis)
    return yield* new ClusterUnavailable({
      message:
        "LICENSING_CLUSTER needs Node: Deno has no TLS with a pre-shared key. Unset it, or start the service with Node."
    })
  const actors = yield* LicenseActors
  const masterKey = yield* MasterKey
  const clock = yield* Clock.Clock
  const needs = {
    actors,
    journal: yield* Journal,
    masterKey,
    timeoutMillis: yield* RequestTimeout,
    traces: yield* Traces,
    onReadiness: () => distribute(),
    fork: yield* FiberSet.makeRuntime<never>()
  }
  const scope = yield* Effect.scope
  const owner = yield* makeOwner
  yield* Effect.mapError(
    listen(listenAt, masterKey, owner.accept),
    ({ message }) => new ClusterUnavailable({ message: `LICENSING_CLUSTER_LISTEN cannot be listened on: ${message}.` })
  )
  const peers = new Map<string, KnownPeer>()
  let known: Parameters<typeof ownersOf>[0] = []
  /** The owner of each shard; undefined: this node. */
  let peerOfShard: ReadonlyArray<Peer | undefined> = []

  /** A node that cannot be reached owns nothing: until its row expires, the others would all decide its licenses. */
  const distribute = (): void => {
    const reached = known.filter((node) => peers.get(keyOf(node))?.isReady() ?? true)
    peerOfShard = ownersOf(reached).map((node) => peers.get(keyOf(node)))
  }
  const onChange = Effect.fnUntraced(function* (changed: typeof known) {
    const nodes = new Map(changed.map((node) => [keyOf(node), node]))
    nodes.delete(keyOf(address))
    for (const [key, node] of nodes) {
      if (peers.has(key)) continue
      const peerScope = yield* Scope.fork(scope)
      peers.set(key, { ...(yield* Scope.provide(makePeer(node, needs), peerScope)), scope: peerScope })
    }
    known = changed
    distribute()
    for (const [key, peer] of peers) {
      if (nodes.has(key)) continue
      peers.delete(key)
      yield* Scope.close(peer.scope, Exit.void)
    }
  })
  actors.setRouter((licenseId, command) => {
    const peer = peerOfShard[shardOf(licenseId)]
    if (peer === undefined || clock.currentTimeMillisUnsafe() - actors.changedElsewhereAt(licenseId) > sharedMillis)
      return false
    return peer.handOver(licenseId, command)
  })
  yield* Effect.addFinalizer(() => owner.leave)
  yield* join(address, onChange)
  const context = yield* Effect.context<never>()
  const observe = Effect.sync(() => {
    clusterNodes({ state: "known" }).updateUnsafe(peers.size, context)
    const connected = Array.from(peers.values()).filter((peer) => peer.isReady())
    clusterNodes({ state: "connected" }).updateUnsafe(connected.length, context)
  })
  yield* Effect.forkScoped(Effect.repeat(observe, Schedule.spaced("1 second")))
})

/** Takes part in the cluster: listens at the first address, and tells other nodes the second one. */
export const layerAt = (listenAt: NodeAddress, address: NodeAddress) =>
  Layer.effectDiscard(start(listenAt, address)).pipe(Layer.provide(storage))
