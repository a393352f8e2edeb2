/**
 * The nodes of the cluster and the owner of each license, by `effect/cluster`: its runner storage keeps a row with a heartbeat for
 * each node, and its hash ring distributes the shards. Every node computes the same ring from the same rows. While the rows change,
 * nodes may disagree for a second: that costs a retry and nothing else.
 *
 * The storage holds one connection for locks of shards. They are not used, because the fence already decides who may write.
 */
import { Duration, Effect, HashRing, Layer, Option, Schedule, type Scope } from "effect"
import { Runner, RunnerAddress, RunnerStorage, ShardingConfig, SqlRunnerStorage } from "effect/cluster"
import type { NodeAddress } from "../../platform/config/Setting.ts"
import { Postgres } from "../../platform/postgres/driver/Postgres.ts"

/** Licenses are distributed by shards. The same on all nodes of all versions. */
const shards = 256
const group = "licenses"
const heartbeatInterval = "1 second"
/** A node without a heartbeat for so long is not an owner any more. Meanwhile its licenses are decided by all nodes. */
const expiration = Duration.seconds(5)
/** Connections of their own, so that a node under load is not taken for dead: one for the storage's locks, one for its rows. */
const connections = 3

/** Always between 0 and the number of shards; allocates nothing. Ids end with random characters. */
export const shardOf = (licenseId: string): number => {
  let hash = 0
  for (let index = Math.max(0, licenseId.length - 8); index < licenseId.length; index++)
    hash = (Math.imul(hash, 31) + licenseId.charCodeAt(index)) | 0
  return (hash ^ (hash >>> 8) ^ (hash >>> 16)) & (shards - 1)
}

/** The owner of each shard among these nodes. */
export const ownersOf = (nodes: ReadonlyArray<RunnerAddress.RunnerAddress>): ReadonlyArray<NodeAddress> => {
  const ring = HashRing.make<RunnerAddress.RunnerAddress>()
  for (const node of nodes) HashRing.add(ring, node)
  return HashRing.getShards(ring, shards) ?? []
}

/** How many of all shards each of these addresses owns, as `keyOf` writes them. */
export const countShards = (addresses: ReadonlyArray<string>): ReadonlyMap<string, number> => {
  const nodes = addresses.toSorted().map((address) => {
    const colon = address.lastIndexOf(":")
    return RunnerAddress.make(address.slice(0, colon), Number(address.slice(colon + 1)))
  })
  const counts = new Map<string, number>()
  for (const owner of ownersOf(nodes)) counts.set(keyOf(owner), (counts.get(keyOf(owner)) ?? 0) + 1)
  return counts
}

/** Takes part until the scope ends. `onChange` gets the nodes, first and whenever they change. */
export const join = Effect.fnUntraced(function* (
  address: NodeAddress,
  onChange: (nodes: ReadonlyArray<RunnerAddress.RunnerAddress>) => Effect.Effect<void>
): Effect.fn.Return<void, never, RunnerStorage.RunnerStorage | Scope.Scope> {
  const storage = yield* RunnerStorage.RunnerStorage
  const self = RunnerAddress.make(address.host, address.port)
  const runner = Runner.make({ address: self, groups: [group], weight: 1 })
  let known = ""
  const pass = Effect.gen(function* () {
    yield* storage.refresh(self, [])
    let rows = yield* storage.getRunners
    if (!rows.some(([{ address }]) => keyOf(address) === keyOf(self))) {
      yield* storage.register(runner, true)
      rows = yield* storage.getRunners
    }
    const nodes = rows.map(([{ address }]) => address).toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    const now = nodes.map(keyOf).join()
    if (now === known) return
    known = now
    yield* Effect.logInfo(`The cluster has ${nodes.length} nodes: ${now}.`)
    yield* onChange(nodes)
  })
  yield* Effect.addFinalizer(() => Effect.ignore(storage.unregister(self)))
  yield* pass.pipe(
    Effect.catchCause((cause) =>
      Effect.logWarning("The nodes of the cluster cannot be read: the last ones are kept.", cause)
    ),
    Effect.repeat(Schedule.spaced(heartbeatInterval)),
    Effect.forkScoped
  )
})

export const keyOf = ({ host, port }: NodeAddress): string => `${host}:${port}`

/** The storage in the service's own database; its table is one of our migrations. */
export const storage = Layer.unwrap(
  Postgres.useSync(({ url }) =>
    SqlRunnerStorage.layerStorage({}).pipe(
      Layer.provide(Postgres.layer({ url, maxConnections: connections, applicationName: "licensing cluster" })),
      Layer.provide(
        ShardingConfig.layer({
          runnerAddress: Option.none(),
          shardLockExpiration: expiration,
          shardLockDisableAdvisory: true
        })
      )
    )
  )
)
