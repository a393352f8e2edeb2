/**
 * Receivers of webhook deliveries, in their own process: one server for each endpoint. They answer immediately and
 * record when each delivery arrived, relative to the time in its body.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

export type ReceiverOrder =
  | { readonly do: "listen"; readonly endpoints: number }
  /** Forgets what came so far. */
  | { readonly do: "begin" }
  /** Answers when so many different deliveries have come since the beginning, or at the latest after so long. */
  | { readonly do: "await"; readonly deliveries: number; readonly secondsMax: number }

export interface Reception {
  readonly did: "received"
  /** Different deliveries, and requests in total. */
  readonly deliveries: number
  readonly requests: number
  /** From the first to the last of them. */
  readonly seconds: number
  /** From the event to its arrival, milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export type ReceiverReply =
  | { readonly did: "listening"; readonly ports: ReadonlyArray<number> }
  | { readonly did: "begun" }
  | Reception

let ids = new Set<string>()
let delays: Array<number> = []
let requests = 0
let firstAt = 0
let lastAt = 0
let awaited: { readonly deliveries: number; readonly answer: () => void } | undefined

const note = (id: string, body: Buffer) => {
  lastAt = Date.now()
  if (requests++ === 0) firstAt = lastAt
  if (ids.has(id)) return
  ids.add(id)
  delays.push(lastAt - Date.parse(JSON.parse(body.toString()).created_at))
  if (awaited !== undefined && ids.size >= awaited.deliveries) awaited.answer()
}

const listen = () =>
  new Promise<number>((resolve) => {
    const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
      let body: Buffer | undefined
      request.on("data", (chunk: Buffer) => {
        body = body === undefined ? chunk : Buffer.concat([body, chunk])
      })
      request.on("end", () => {
        note(String(request.headers["x-service-delivery-id"]), body ?? Buffer.alloc(0))
        response.writeHead(204).end()
      })
    })
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port))
  })

const reception = (): Reception => {
  const sorted = Float64Array.from(delays).sort()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return {
    did: "received",
    deliveries: ids.size,
    requests,
    seconds: (lastAt - firstAt) / 1_000,
    p50: at(0.5),
    p99: at(0.99),
    max: sorted.at(-1) ?? 0
  }
}

const untilReceived = (deliveries: number, secondsMax: number) =>
  new Promise<Reception>((resolve) => {
    const answer = () => {
      clearTimeout(patience)
      awaited = undefined
      resolve(reception())
    }
    const patience = setTimeout(answer, secondsMax * 1_000)
    awaited = { deliveries, answer }
    if (ids.size >= deliveries) answer()
  })

const execute = async (order: ReceiverOrder): Promise<ReceiverReply> => {
  switch (order.do) {
    case "listen":
      return { did: "listening", ports: await Promise.all(Array.from({ length: order.endpoints }, listen)) }
    case "begin":
      ids = new Set()
      delays = []
      requests = 0
      return { did: "begun" }
    case "await":
      return untilReceived(order.deliveries, order.secondsMax)
  }
}

process.on("message", (order: ReceiverOrder) => {
  execute(order).then((reply) => process.send?.(reply))
})
