/** A sampled request whose command another node decides is one trace over both nodes, with the deliveries of its events. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { Traces } from "../../../src/platform/telemetry/Traces.ts"
import { Database } from "../../support/database/Database.ts"
import { makeHandingOver } from "../../support/database/HandingOver.ts"
import { makeLicense, requestOf } from "../../support/database/StoredLicenses.ts"
import { layerTelemetry, TelemetryReceiver } from "../../support/http/TelemetryReceiver.ts"

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
      const { handOver } = yield* makeHandingOver
      const license = yield* makeLicense()
      const request = traces.startRequest({ method: "POST", url: "/x", headers: {} })!
      const command = { ...requestOf(license, "m"), newDeviceId: "dev_1" }
      assert.isTrue(Exit.isSuccess(yield* handOver(license.license, activate, command, request)))
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
      const decided = yield* awaitSpan("license activate")
      assert.deepInclude(decided, { traceId: root.traceId, parentSpanId: handed.spanId })
      assert.strictEqual((yield* awaitSpan("journal.commit")).parentSpanId, decided.spanId)
      assert.deepInclude(yield* awaitSpan("POST"), { traceId: root.traceId, parentSpanId: handed.spanId })
    })
  )
})
