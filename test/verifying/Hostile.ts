/** A server that is not the service: it redirects, sends too much or a page, stalls, and closes connections. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"

/** Begins a response and never ends it. */
const stall = (response: ServerResponse) => void response.writeHead(200, { "content-length": 1_000 }).write("{")

export const hostileServer = Effect.acquireRelease(
  Effect.callback<{
    readonly url: string
    readonly stolen: Array<string>
    readonly close: () => Promise<void>
  }>((resume) => {
    /** The license keys that a redirect carried away. */
    const stolen: Array<string> = []
    const answer = (kind: string | undefined, request: IncomingMessage, response: ServerResponse) => {
      if (kind === "redirect") return response.writeHead(302, { location: "/stolen/" }).end()
      if (kind === "stolen") stolen.push(request.headers.authorization ?? "")
      if (kind === "large") return response.end("x".repeat(2 ** 21))
      if (kind === "slow") return stall(response)
      if (kind === "closed") return response.destroy()
      return response.end("<!doctype html><title>Welcome to the hotel</title>")
    }
    const server = createServer((request, response) => {
      const [, kind] = (request.url ?? "").split("/")
      // After the whole request: closing a connection with unread bytes would reset it, and the response could be lost.
      request.resume().once("end", () => void answer(kind, request, response))
    })
    server.listen(0, "127.0.0.1", () => {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const close = () =>
        new Promise<void>((resolve) => {
          server.close(() => resolve())
          server.closeAllConnections()
        })
      resume(Effect.succeed({ url, stolen, close }))
    })
  }),
  ({ close }) => Effect.promise(close)
)

/** What a kit with a believed offline envelope says of each. */
export const hostileWords = [
  "redirect: not granted, run NOT_REACHED, response",
  "large: not granted, run NOT_REACHED, response",
  "page: not granted, run NOT_REACHED, response",
  "slow: not granted, run NOT_REACHED, timeout",
  "closed: not granted, run NOT_REACHED, network"
]
