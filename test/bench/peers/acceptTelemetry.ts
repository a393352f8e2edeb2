/** A receiver of OTLP over HTTP, in its own process: accepts everything, drops it, and counts what came. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

/** Requests and megabytes since the previous message. */
export interface Accepted {
  readonly requests: number
  readonly megabytes: number
}

export type AcceptedReply = { readonly port: number } | Accepted

let requests = 0
let bytes = 0

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  requests++
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length
  })
  // An empty body is a protobuf message without fields.
  request.on("end", () => response.writeHead(200, { "content-type": "application/x-protobuf" }).end())
})

process.on("message", () => {
  process.send?.({ requests, megabytes: bytes / 1e6 } satisfies AcceptedReply)
  requests = 0
  bytes = 0
})

server.listen(0, "127.0.0.1", () => {
  process.send?.({ port: (server.address() as AddressInfo).port } satisfies AcceptedReply)
})
