import { assert, describe, it } from "@effect/vitest"
import { pauseMillisAfter } from "../../src/webhooks/Throttle.ts"

describe("the pace of deliveries", () => {
  it("knows no limit while nobody waits for answers", () => {
    assert.strictEqual(pauseMillisAfter(512, { millis: 1_000, requests: 0, utilization: 1 }), 0)
    assert.strictEqual(pauseMillisAfter(512, { millis: 1_000, requests: 50, utilization: 1 }), 0)
  })

  it("is 4,000 a second beside requests, and 1,200 where the event loop has hardly a free moment", () => {
    const beside = { millis: 100, requests: 6 }
    assert.strictEqual(pauseMillisAfter(4_000, { ...beside, utilization: 0.7 }), 1_000)
    assert.strictEqual(pauseMillisAfter(1_200, { ...beside, utilization: 0.71 }), 1_000)
    assert.strictEqual(pauseMillisAfter(0, { ...beside, utilization: 0.5 }), 0)
  })
})
