/** The measured requests to a license of any size. */
import { Effect } from "effect"
import { type Answer, type Caller, makeCaller } from "../load/Caller.ts"
import type { TurnResult, TurnSide } from "../load/Turns.ts"
import { fingerprintOf, leaseTokenOf, type Target } from "./largeLicense.ts"
import type { Session } from "./scaleRows.ts"

interface Outgoing {
  readonly path: string
  readonly body: object
}

let keyCount = 0

/**
 * A device's last-seen time is written once a second: a small license, which sees the same devices every other turn,
 * must not skip that write. The order of sides changes with each turn, so some of them begin early.
 */
const restMillis = 650

/** A use of an uncached license: a load. */
export const firstUse = "first use"

export const operationsOf = (base: string, session: Session, target: Target, connections: number) => {
  const callers = Array.from({ length: connections }, () => makeCaller(base))
  const post = (caller: Caller, { body, path }: Outgoing): Promise<Answer> =>
    caller.post(`/api/v1/license/${path}`, target.authorization, JSON.stringify(body))
  const operationOf = (
    name: string,
    next: () => Outgoing,
    { after, ...rest }: { readonly restMillis?: number; readonly after?: (answer: Answer) => Outgoing } = {}
  ): TurnSide => ({
    name,
    ...rest,
    run: (requests) =>
      inLanes(requests, callers, async (caller) => {
        const answer = await post(caller, next())
        if (answer.status === 200 && after !== undefined) await post(caller, after(answer))
        return answer
      })
  })
  let useCount = 0
  // The devices of a small license in rotation; of a large one, rarely the same device twice.
  const fingerprintInUse = () => fingerprintOf((useCount++ * 7_919) % target.devices)
  const operations = [
    operationOf("validate", () => ({ path: "validate", body: { fingerprint: fingerprintInUse() } }), { restMillis }),
    operationOf("activate known", () => ({ path: "activate", body: { fingerprint: fingerprintInUse() } }), {
      restMillis
    }),
    operationOf("consume", () => ({
      path: "consume",
      body: { fingerprint: fingerprintInUse(), feature_code: "feature-0", event_id: `event-${++keyCount}` }
    })),
    operationOf("heartbeat", () => ({
      path: "floating/heartbeat",
      body: { lease_token: leaseTokenOf(target, (useCount++ * 7_919) % target.leases) }
    })),
    // A seat is released immediately, unmeasured, so that a small license stays small.
    operationOf("checkout", () => ({ path: "floating/checkout", body: { fingerprint: `user-${useCount++ % 100}` } }), {
      after: ({ text }) => ({ path: "floating/checkin", body: { lease_token: JSON.parse(text()).data.lease_token } })
    }),
    operationOf("activate new", () => ({ path: "activate", body: { fingerprint: `new-${++keyCount}` } })),
    {
      name: firstUse,
      run: (requests: number) =>
        inLanes(requests, callers.slice(0, 1), async (caller) => {
          await changed(session, target)
          return post(caller, { path: "validate", body: { fingerprint: fingerprintInUse() } })
        })
    }
  ]
  const close = () => {
    for (const caller of callers) caller.close()
  }
  return { operations, close }
}

const inLanes = async (
  requests: number,
  callers: ReadonlyArray<Caller>,
  send: (caller: Caller) => Promise<Answer>
): Promise<TurnResult> => {
  const latencies: Array<number> = []
  let [remaining, failed] = [requests, 0]
  const lane = async (caller: Caller) => {
    while (remaining-- > 0) {
      const { millis, status } = await send(caller)
      if (status === 200) latencies.push(millis)
      else failed++
    }
  }
  await Promise.all(callers.map(lane))
  return { latencies, failed }
}

/** A license is changed without its actor, which has to load it for its next use. */
const changed = ({ values }: Session, { id }: Target) =>
  Effect.runPromise(values(`UPDATE licenses SET revision = revision + 1 WHERE id = '${id}'`))
