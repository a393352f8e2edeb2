/** What is asked of a license of any size. */
import { Effect } from "effect"
import { Pool } from "undici"
import { connect } from "./Connect.ts"
import type { Management } from "./Licenses.ts"
import { fingerprintOf, leaseTokenOf, type Target } from "./largeLicense.ts"
import type { Session } from "./scaleRows.ts"
import type { Answered, Asked } from "./Turns.ts"

interface Outgoing {
  readonly path: string
  readonly body: object
}

interface Answer {
  readonly millis: number
  readonly right: boolean
  readonly text: string
}

let made = 0

/**
 * A device is noted as seen once a second: a small license, which sees the same ones every other turn, must not be spared that. The
 * order of sides changes with each turn, so some of them begin early.
 */
const restMillis = 650

export const operationsOf = (base: string, target: Target, connections: number) => {
  const pool = new Pool(base, { connections, connect })
  const post = async ({ body, path }: Outgoing): Promise<Answer> => {
    const began = performance.now()
    const { body: answer, statusCode } = await pool.request({
      path: `/api/v1/license/${path}`,
      method: "POST",
      headers: { authorization: target.authorization, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    const text = await answer.text()
    return { millis: performance.now() - began, right: statusCode === 200, text }
  }
  const asked = (
    name: string,
    next: () => Outgoing,
    { after, ...rest }: { readonly restMillis?: number; readonly after?: (answer: Answer) => Promise<unknown> } = {}
  ): Asked => ({
    name,
    ...rest,
    run: (requests) => inLanes(requests, connections, () => post(next()), after)
  })
  let asks = 0
  // All devices of a small license in turn; of a large one, hardly ever the same twice.
  const known = () => fingerprintOf((asks++ * 7_919) % target.devices)
  const operations = [
    asked("validate", () => ({ path: "validate", body: { fingerprint: known() } }), { restMillis }),
    asked("activate known", () => ({ path: "activate", body: { fingerprint: known() } }), { restMillis }),
    asked("consume", () => ({
      path: "consume",
      body: { fingerprint: known(), feature_code: "feature-0", event_id: `event-${++made}` }
    })),
    asked("heartbeat", () => ({
      path: "floating/heartbeat",
      body: { lease_token: leaseTokenOf(target, (asks++ * 7_919) % target.leases) }
    })),
    // A seat is given back at once, unmeasured, so that a small license stays small.
    asked("checkout", () => ({ path: "floating/checkout", body: { fingerprint: `user-${asks++ % 100}` } }), {
      after: ({ text }) => post({ path: "floating/checkin", body: { lease_token: JSON.parse(text).data.lease_token } })
    }),
    asked("activate new", () => ({ path: "activate", body: { fingerprint: `new-${++made}` } }))
  ]
  return { operations, close: () => pool.close() }
}

const inLanes = async (
  requests: number,
  lanes: number,
  send: () => Promise<Answer>,
  after: (answer: Answer) => Promise<unknown> = async () => {}
): Promise<Answered> => {
  const latencies: Array<number> = []
  let [left, failed] = [requests, 0]
  const lane = async () => {
    while (left-- > 0) {
      const answer = await send()
      if (answer.right) {
        latencies.push(answer.millis)
        await after(answer)
      } else failed++
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return { latencies, failed }
}

/** Uses of a license that was changed past its actor, which has to load it again. */
export const firstUse = Effect.fnUntraced(function* (management: Management, { values }: Session, target: Target) {
  const run = Effect.runPromiseWith(yield* Effect.context<never>())
  const fingerprint = fingerprintOf(0)
  return {
    run: async (requests: number): Promise<Answered> => {
      const latencies: Array<number> = []
      for (let left = requests; left > 0; left--) {
        await run(values(`UPDATE licenses SET revision = revision + 1 WHERE id = '${target.id}'`))
        const began = performance.now()
        await management.runtime("/license/validate", target, { fingerprint })
        latencies.push(performance.now() - began)
      }
      return { latencies, failed: 0 }
    }
  }
})
