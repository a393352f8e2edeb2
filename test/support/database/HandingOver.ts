/** Two nodes on the test's database, of which one hands every command over to the other. */
import { Effect, Exit, FiberSet, identity } from "effect"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { listen } from "../../../src/licensing/cluster/NodeLink.ts"
import { makeOwner } from "../../../src/licensing/cluster/Owner.ts"
import { makePeer } from "../../../src/licensing/cluster/Peer.ts"
import { Journal } from "../../../src/licensing/engine/Journal.ts"
import { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import { type CommandResult, pendingCommand } from "../../../src/licensing/engine/PendingCommand.ts"
import type { Rule } from "../../../src/licensing/rules/LicenseCommand.ts"
import { RequestTimeout } from "../../../src/platform/postgres/driver/Deadline.ts"
import type { MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import { type PendingSignature, Signer } from "../../../src/platform/signing/Signer.ts"
import { Traces } from "../../../src/platform/telemetry/Traces.ts"
import { freePort } from "../processes/FreePort.ts"
import { makeNode } from "./LicenseNodes.ts"

const masterKey = {
  derive: (_: string, keyId = "key") => ({ keyId, secret: Buffer.alloc(32, 7) })
} as unknown as MasterKey["Service"]

const signature: PendingSignature = (onSignature) =>
  onSignature(Exit.succeed({ bytes: "{}", signature: { alg: "Ed25519", kid: "kid", value: "value" } }))
const signer = { begin: () => signature } as Partial<Signer["Service"]> as Signer["Service"]

export const makeHandingOver = Effect.gen(function* () {
  const traces = yield* Traces
  const [asker, ownerNode] = [yield* makeNode, yield* makeNode]
  const owner = yield* makeOwner.pipe(
    Effect.provideService(LicenseActors, ownerNode),
    Effect.provideService(Journal, ownerNode.journal),
    Effect.provideService(Signer, signer)
  )
  const address = { host: "127.0.0.1", port: yield* freePort }
  yield* listen(address, masterKey, owner.accept)
  const peer = yield* makePeer(address, {
    actors: asker,
    journal: asker.journal,
    masterKey,
    timeoutMillis: yield* RequestTimeout,
    traces,
    onReadiness: () => {},
    fork: yield* FiberSet.makeRuntime<never>()
  })
  yield* Effect.repeat(Effect.yieldNow, { until: peer.isReady })
  /** Waits for the result of a command that is handed over. */
  const handOver = <Command, Reply, C extends Code>(
    license: string,
    rule: Rule<Command, Reply, C>,
    command: NoInfer<Command>,
    span = undefined as Parameters<typeof pendingCommand>[0]["span"]
  ) =>
    Effect.callback<CommandResult>((resume) => {
      const pending = pendingCommand({
        rule,
        command,
        origin: { actor_type: "license", actor_id: license, request_id: "req_1", ip_address: undefined },
        begin: identity,
        signs: {},
        span,
        resume: (exit) => resume(Effect.succeed(exit))
      })
      if (!peer.handOver(license, pending)) resume(Effect.die("not handed over"))
    })
  return { asker, handOver }
})
