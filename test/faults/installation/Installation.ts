/** The service as operators run it: PostgreSQL, nodes, links between them, and webhook receivers. */
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { prepare } from "../../../src/platform/postgres/embedded/DatabaseFolder.ts"
import { serverFolder } from "../../support/database/DatabaseServer.ts"
import type { Loss } from "../checks/Losses.ts"
import { makeCaller } from "../load/Caller.ts"
import { makeLink } from "./Link.ts"
import { makePostgresServer, type PostgresServer } from "./PostgresServer.ts"
import { makeReceiver } from "./Receiver.ts"
import { makeServiceNode, type ServiceNode } from "./ServiceNode.ts"

export type Installation = Omit<Effect.Success<ReturnType<typeof makeInstallation>>, "postgres"> & {
  /** The primary: another one after a failover. */
  postgres: PostgresServer
}

const baseSettings = (databasePort: number, password: string, token: string) => ({
  LICENSING_DATABASE_URL: `postgres://postgres:${password}@127.0.0.1:${databasePort}/postgres`,
  LICENSING_MASTER_KEY: Buffer.alloc(32, 9).toString("base64"),
  LICENSING_BOOTSTRAP_TOKEN: token,
  LICENSING_LOG_FORMAT: "json",
  LICENSING_LOG_LEVEL: "warn",
  LICENSING_RATE_RUNTIME: "0",
  LICENSING_RATE_ACTIVATION: "0",
  LICENSING_RATE_MANAGEMENT: "0",
  LICENSING_RATE_FAILURES: "0",
  LICENSING_WEBHOOK_ALLOW_LOCAL: "true",
  LICENSING_WEBHOOK_RETRY_SECONDS: Array.from({ length: 9 }, () => "1").join(","),
  LICENSING_SWEEP_SECONDS: "1",
  LICENSING_DRAIN_SECONDS: "1"
})

/** With one node, or with several that hand commands over. They run a checkout of an earlier version, if one is given. */
export const makeInstallation = Effect.fnUntraced(
  function* (size: number, previous?: string) {
    const directory = yield* serverFolder
    const folder = yield* prepare(directory)
    const postgres = yield* makePostgresServer(folder, folder.cluster)
    const token = `faults_${randomBytes(32).toString("base64url")}`
    const nodes: Array<ServiceNode> = []
    for (let index = 0; index < size; index++) {
      const link = yield* makeLink(postgres.port)
      const settings = {
        ...baseSettings(link.port, postgres.password, token),
        ...(size > 1 && { LICENSING_CLUSTER: "true" })
      }
      const log = join(directory, `node-${index + 1}.log`)
      nodes.push(yield* makeServiceNode(`node ${index + 1}`, log, link, settings, previous))
    }
    for (const { untilReady } of nodes) yield* untilReady
    const receivers = { honest: yield* makeReceiver, lying: yield* makeReceiver }
    const manage = makeCaller(nodes, token)
    const losses: Array<Loss> = []
    return { losses, scope: yield* Effect.scope, folder, postgres, nodes, token, receivers, manage }
  },
  Effect.provide(Layer.merge(NodeFileSystem.layer, SecureRandom.layerWebCrypto))
)
