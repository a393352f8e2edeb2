import { assert, describe, it } from "@effect/vitest"
import { pauseMillisAfter } from "../../../src/ledger/webhooks/Throttle.ts"

describe("the throttle of deliveries", () => {
  it("sets no limit while no client waits for a response", () => {
    assert.strictEqual(pauseMillisAfter(512, { millis: 1_000, requests: 0, utilization: 1 }), 0)
    assert.strictEqual(pauseMillisAfter(512, { millis: 1_000, requests: 50, utilization: 1 }), 0)
  })

  it("allows 4,000 deliveries a second beside requests, and 1,200 when the event loop is almost never idle", () => {
    const besideRequests = { millis: 100, requests: 6 }
    assert.strictEqual(pauseMillisAfter(4_000, { ...besideRequests, utilization: 0.7 }), 1_000)
    assert.strictEqual(pauseMillisAfter(1_200, { ...besideRequests, utilization: 0.71 }), 1_000)
    assert.strictEqual(pauseMillisAfter(0, { ...besideRequests, utilization: 0.5 }), 0)
  })
})
