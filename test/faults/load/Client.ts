/** A client: one call after the other, at any node, each recorded with all that it was told. */
import { createHash } from "node:crypto"
import { Clock, Effect } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"
import type { RandomSource } from "../../simulation/requests/RandomSource.ts"
import type { ServiceNode } from "../installation/ServiceNode.ts"
import { type Received, request } from "./Caller.ts"
import { featureCode } from "./Catalog.ts"
import { type Attempt, type Call, isAcknowledged, outcomeOf } from "./History.ts"
import { type Drawn, draw, type Memory } from "./Requests.ts"

/** Of calls without an answer, those that are repeated; others stay unknown. */
const repeatedShare = 0.75
const attemptsMax = 8
/** Between two requests: clients on one machine must leave time to the service. */
const pauseMillis = 20
/** After a request without an answer. */
const outageMillis = 150

export interface Place {
  readonly nodes: ReadonlyArray<ServiceNode>
  readonly token: string
  readonly calls: Array<Call>
  readonly mayContinue: () => boolean
  /** Waits before the next request; without it clients pause for a drawn time. */
  readonly pace?: Effect.Effect<void>
}

export const runClient = Effect.fnUntraced(function* (place: Place, memory: Memory, random: RandomSource) {
  yield* pauseFor(random.between(0, pauseMillis))
  while (place.mayContinue()) {
    const drawn = draw(memory, random)
    const { body: _body, method: _method, path: _path, ...names } = drawn
    const call: Call = { ...names, client: memory.client, attempts: [] }
    place.calls.push(call)
    const attemptsAllowed = random.chance(repeatedShare) ? attemptsMax : 1
    do {
      yield* attempt(place, memory, random, drawn, call)
      const isUnknown = outcomeOf(call) === "unknown"
      const longest = 2 * (isUnknown ? outageMillis : pauseMillis)
      const drawnPause = pauseFor(random.between(longest / 4, longest))
      yield* isUnknown ? drawnPause : (place.pace ?? drawnPause)
    } while (outcomeOf(call) === "unknown" && call.attempts.length < attemptsAllowed)
  }
})

const attempt = Effect.fnUntraced(function* (
  { nodes, token }: Place,
  memory: Memory,
  random: RandomSource,
  drawn: Drawn,
  call: Call
) {
  const node = random.pick(nodes)
  const requestId = `${memory.round}-${memory.client}-${memory.sent}-${call.attempts.length}`
  const one: Attempt = { requestId, node: node.name, sentAt: yield* Clock.currentTimeMillis, status: 0 }
  call.attempts.push(one)
  const received = yield* request(node, {
    method: drawn.method,
    path: drawn.path,
    key: drawn.key,
    ...(drawn.body && { body: drawn.body }),
    authorization: drawn.key === undefined ? `License ${keyOf(memory, drawn.license)}` : `Bearer ${token}`,
    requestId
  })
  if (received.status === 0) return
  one.answeredAt = yield* Clock.currentTimeMillis
  one.status = received.status
  if (isAcknowledged(one)) remember(memory, drawn, one, received)
  else one.code = (received.json["error"] as { code?: string } | undefined)?.code ?? ""
})

const keyOf = ({ licenses }: Memory, id: string) => licenses.find((license) => license.id === id)?.key ?? ""

interface Payload {
  readonly entitlement_version?: number
  readonly lease_token?: string
  readonly features?: ReadonlyArray<{ readonly code: string; readonly consumed?: number }>
}

const remember = (memory: Memory, { license, operation }: Drawn, one: Attempt, { json }: Received) => {
  const { entitlement_version, features, lease_token } = json["data"] as Payload
  if (entitlement_version !== undefined) one.version = entitlement_version
  const consumed = features?.find?.(({ code }) => code === featureCode)?.consumed
  if (consumed !== undefined) one.consumed = consumed
  if (lease_token !== undefined) {
    one.tokenHash = createHash("sha256").update(lease_token).digest("hex")
    memory.leases.set(license, { token: lease_token, hash: one.tokenHash })
  }
  if (operation === "checkin") memory.leases.delete(license)
  if (operation === "activate") memory.activated.add(license)
  if (operation === "deactivate") memory.activated.delete(license)
}
