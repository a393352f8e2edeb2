/** A sampled request whose command another node decides is one trace over both nodes, with the deliveries of its events. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, FiberSet, identity, Layer } from "effect"
import { listen } from "../../../src/licensing/cluster/NodeLink.ts"
import { makeOwner } from "../../../src/licensing/cluster/Owner.ts"
import { makePeer } from "../../../src/licensing/cluster/Peer.ts"
import { Journal } from "../../../src/licensing/engine/Journal.ts"
import { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import { type CommandResult, pendingCommand } from "../../../src/licensing/engine/PendingCommand.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import type { MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import { type PendingSignature, Signer } from "../../../src/platform/signing/Signer.ts"
import { Traces } from "../../../src/platform/telemetry/Traces.ts"
import { Database } from "../../support/database/Database.ts"
import { makeNode } from "../../support/database/LicenseNodes.ts"
import { makeLicense, requestOf } from "../../support/database/StoredLicenses.ts"
import { layerTelemetry, TelemetryReceiver } from "../../support/http/TelemetryReceiver.ts"
import { freePort } from "../../support/processes/FreePort.ts"

const masterKey = {
  derive: (_: string, keyId = "key") => ({ keyId, secret: Buffer.alloc(32, 7) })
} as unknown as MasterKey["Service"]

const signature: PendingSignature = (onSignature) =>
  onSignature(Exit.succeed({ bytes: "{}", signature: { alg: "Ed25519", kid: "kid", value: "value" } }))
const signer = { begin: () => signature } as Partial<Signer["Service"]> as Signer["Service"]

const subject = Layer.mergeAll(
  Database.layer,
  // No header of a caller or receiver is needed between nodes.
  layerTelemetry({ OTEL_PROPAGATORS: "b3" }).pipe(Layer.provideMerge(TelemetryReceiver.layer))
)

layer(subject, { excludeTestServices: true, timeout: 60_000 })("A sampled command", (it) => {
  it.effect("has spans at its owner, below the request's at the other node", () =>
    Effect.gen(function* () {
      const traces = (yield* Traces)!
      const { spans, until } = yield* TelemetryReceiver
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
        timeoutMillis: 10_000,
        traces,
        onReadiness: () => {},
        fork: yield* FiberSet.makeRuntime<never>()
      })
      const license = yield* makeLicense()
      const request = traces.startRequest({ method: "POST", url: "/x", headers: {} })!
      const asked = Effect.callback<CommandResult>((resume) => {
        const command = pendingCommand({
          rule: activate,
          command: { ...requestOf(license, "m"), newDeviceId: "dev_1" },
          origin: { actor_type: "license", actor_id: license.license, request_id: "req_1", ip_address: undefined },
          begin: identity,
          signs: {},
          span: request,
          resume: (exit) => resume(Effect.succeed(exit))
        })
        if (!peer.handOver(license.license, command)) resume(Effect.die("not handed over"))
      })
      yield* Effect.repeat(Effect.yieldNow, { until: peer.isReady })
      assert.isTrue(Exit.isSuccess(yield* asked))
      const delivery = traces.startDelivery({
        requestId: "req_1",
        url: new URL("http://localhost"),
        endpointId: "wh_1",
        eventType: "license.activated",
        sequence: 1,
        attempts: 0
      })!
      traces.endDelivery(delivery, { status: 200 })
      traces.endRequest(request, { method: "POST", route: "/x", status: 200, refused: undefined })
      const awaitSpan = (name: string) => until(() => spans.find((span) => span.name === name))
      const [root, handed] = [yield* awaitSpan("POST /x"), yield* awaitSpan("handed over activate")]
      assert.deepInclude(handed, { traceId: root.traceId, parentSpanId: root.spanId, kind: "SERVER" })
      const command = yield* awaitSpan("license activate")
      assert.deepInclude(command, { traceId: root.traceId, parentSpanId: handed.spanId })
      assert.strictEqual((yield* awaitSpan("journal.commit")).parentSpanId, command.spanId)
      assert.deepInclude(yield* awaitSpan("POST"), { traceId: root.traceId, parentSpanId: handed.spanId })
    })
  )
})
