/** Whether this node takes part in a cluster. The cluster's code is loaded only then: it takes megabytes of memory. */
import { Effect, Layer } from "effect"
import { Settings } from "../../platform/config/Config.ts"

/** Takes part in the cluster if the settings say so. */
export const layer = Layer.unwrap(
  Effect.gen(function* () {
    const { cluster, clusterAddress, clusterListen } = yield* Settings
    if (!cluster || clusterAddress === undefined || clusterListen === undefined) return Layer.empty
    const { layerAt } = yield* Effect.promise(() => import("./Cluster.ts"))
    return layerAt(clusterListen, clusterAddress)
  })
)
