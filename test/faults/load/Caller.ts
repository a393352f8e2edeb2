/** HTTP requests to the nodes. A request without an answer has the status 0. */
import { Effect } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"
import type { ServiceNode } from "../installation/ServiceNode.ts"

export interface Message {
  readonly method: "GET" | "POST" | "PATCH"
  /** Below /api/v1. */
  readonly path: string
  readonly authorization: string
  readonly requestId?: string
  readonly key?: string | undefined
  readonly body?: object
}

export interface Received {
  readonly status: number
  readonly json: Record<string, unknown>
  /** The connection was refused, so no process received the request. */
  readonly isUnsent?: boolean
}

const nothing: Received = { status: 0, json: {} }

export const request = ({ pool }: ServiceNode, message: Message): Effect.Effect<Received> =>
  Effect.tryPromise((signal) =>
    pool
      .request({
        path: `/api/v1${message.path}`,
        method: message.method,
        headers: {
          authorization: message.authorization,
          ...(message.requestId && { "x-request-id": message.requestId }),
          ...(message.key && { "idempotency-key": message.key }),
          ...(message.body && { "content-type": "application/json" })
        },
        ...(message.body && { body: JSON.stringify(message.body) }),
        signal
      })
      .then(({ body, statusCode }) =>
        body.json().then((json) => ({ status: statusCode, json: json as Received["json"] }))
      )
  ).pipe(
    Effect.catch(({ cause }) =>
      Effect.succeed({ ...nothing, isUnsent: (cause as { readonly code?: string }).code === "ECONNREFUSED" })
    )
  )

const attemptsMax = 200
const pauseMillis = 100

/** Management requests of the harness itself: at one node after the other, until one answers with a success. */
export const makeCaller =
  (nodes: ReadonlyArray<ServiceNode>, token: string) =>
  <A>(method: Message["method"], path: string, body?: object, key?: string): Effect.Effect<A> =>
    Effect.gen(function* () {
      let last = nothing
      for (let attempt = 0; attempt < attemptsMax; attempt++) {
        const message = { method, path, authorization: `Bearer ${token}`, key, ...(body && { body }) }
        last = yield* request(nodes[attempt % nodes.length]!, message)
        if (last.status >= 200 && last.status < 300) return last.json["data"] as A
        yield* pauseFor(pauseMillis)
      }
      return yield* Effect.die(new Error(`${method} ${path} answered ${last.status}: ${JSON.stringify(last.json)}`))
    })
