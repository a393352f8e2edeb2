/** A machine that uses a license, and now and then its vendor: one call after the other, at any node, each recorded. */
import { Clock, Effect } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"
import type { RandomSource } from "../../simulation/requests/RandomSource.ts"
import type { ServiceNode } from "../installation/ServiceNode.ts"
import { type Message, type Received, request } from "../load/Caller.ts"
import { featureCode, type SoldLicense } from "../load/Catalog.ts"
import { outcomeOfAttempt } from "../load/History.ts"
import type { Catalog } from "./Licenses.ts"
import type { Line, Operation } from "./Line.ts"

export interface Place {
  readonly nodes: ReadonlyArray<ServiceNode>
  readonly token: string
  readonly catalog: Catalog
  readonly lines: Array<Line>
}

type Drawn = Pick<Line, "operation" | "machine" | "once" | "amount" | "quota" | "reset_consumed" | "activations"> &
  Pick<Message, "method" | "path" | "body">

const weights = {
  consume: 40,
  validate: 12,
  activate: 14,
  deactivate: 6,
  suspend: 1.5,
  reinstate: 4,
  move: 3,
  reset: 5
} satisfies Partial<Record<Operation, number>>

/** Of calls, those that are sent a second time, answered or not; others are repeated until they are answered. */
const sentTwiceShare = 0.2
const attemptsMax = 6
/** Longer after a request without an answer: each of these multiplies the orders that the checker has to try. */
const [pauseMillis, outageMillis] = [60, 1_500]

export const runClient = Effect.fnUntraced(function* (
  place: Place,
  license: SoldLicense,
  client: number,
  calls: number,
  random: RandomSource
) {
  for (let call = 0; call < calls; call++) {
    const drawn = draw(place.catalog, license, client, `${license.id}-${client}-${call}`, random)
    // A repeated call has the same event_id or Idempotency-Key.
    const isSentTwice = random.chance(sentTwiceShare)
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      const { outcome } = yield* record(place, license, client, drawn, random)
      yield* pauseFor(random.between(0, outcome === "unknown" ? outageMillis : pauseMillis))
      if (isSentTwice ? attempt === 2 : outcome !== "unknown") break
    }
  }
})

const draw = (
  { policies }: Catalog,
  { id }: SoldLicense,
  machine: number,
  once: string,
  random: RandomSource
): Drawn => {
  const operation = random.weighted(weights)
  const byMachine = (body: object = {}) =>
    ({
      operation,
      machine,
      method: "POST",
      path: `/license/${operation}`,
      body: { fingerprint: `machine-${machine}`, ...body }
    }) as const
  const byVendor = (path: string, body: object = {}) =>
    ({ operation, once, method: "POST", path: `/licenses/${id}/${path}`, body }) as const
  switch (operation) {
    case "consume": {
      const amount = random.between(1, 3)
      return { ...byMachine({ feature_code: featureCode, event_id: once, amount }), once, amount }
    }
    case "move": {
      const policy = random.pick(policies)
      return { ...byVendor("policy", { policy_id: policy.id }), activations: policy.max_activations }
    }
    case "reset": {
      const change = random.chance(0.5) ? { reset_consumed: true } : { max_consumptions: random.between(10, 40) }
      const told = "reset_consumed" in change ? change : { quota: change.max_consumptions }
      return { ...byVendor("usage/reset", { feature_code: featureCode, ...change }), ...told }
    }
    case "suspend":
    case "reinstate": {
      const { body: _none, ...drawn } = byVendor(operation)
      return drawn
    }
    default:
      return byMachine()
  }
}

const record = Effect.fnUntraced(function* (
  { lines, nodes, token }: Place,
  { id, key }: SoldLicense,
  client: number,
  { body, method, path, ...told }: Drawn,
  random: RandomSource
) {
  const isManaged = path.startsWith("/licenses/")
  const sent = yield* Clock.currentTimeMillis
  const received = yield* request(random.pick(nodes), {
    ...{ method, path, key: isManaged ? told.once : undefined },
    authorization: isManaged ? `Bearer ${token}` : `License ${key}`,
    ...(body && { body })
  })
  const answered = yield* Clock.currentTimeMillis
  const line: Line = { history: id, client, ...told, sent, ...answerOf(received, answered) }
  if (received.isUnsent !== true) lines.push(line)
  return line
})

interface Answer {
  readonly error?: { readonly code: string }
  readonly data?: { readonly features?: ReadonlyArray<{ readonly code: string; readonly consumed?: number }> }
}

const answerOf = (
  { json, status }: Received,
  answered: number
): Pick<Line, "answered" | "outcome" | "code" | "consumed"> => {
  const { data, error } = json as Answer
  const outcome = outcomeOfAttempt({ status, code: error?.code ?? "" })
  if (outcome === "unknown") return { outcome }
  if (outcome === "refused") return { answered, outcome, code: error?.code ?? "" }
  const consumed = data?.features?.find?.(({ code }) => code === featureCode)?.consumed
  return { answered, outcome, ...(consumed !== undefined && { consumed }) }
}
