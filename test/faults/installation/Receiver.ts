/** A webhook receiver: it verifies and keeps what arrives, and answers as a fault wants. */
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"
import { verifyWebhook } from "../../../src/ledger/webhooks/VerifyWebhook.ts"

export interface Receiver {
  readonly url: string
  /** The secret of its endpoint, once that exists. */
  secret: string
  /** Type and time of the events that came in genuine deliveries, by number. */
  readonly received: Map<number, Map<string, number>>
  /** Deliveries with a wrong signature. */
  readonly wrong: Array<string>
  /** How it answers; 204 at first. */
  answer: (response: ServerResponse) => void
}

export const honest: Receiver["answer"] = (response) => void response.writeHead(204).end()

export const makeReceiver = Effect.gen(function* () {
  const receiver: Receiver = { url: "", secret: "", received: new Map(), wrong: [], answer: honest }
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("error", () => {})
    request.on("end", () => {
      keep(receiver, request.headers, Buffer.concat(chunks))
      receiver.answer(response)
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
  return Object.assign(receiver, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` })
})

const keep = (
  { received, secret, wrong }: Receiver,
  headers: Record<string, string | ReadonlyArray<string> | undefined>,
  body: Buffer
) => {
  const verified = verifyWebhook({ secret, headers, body })
  if (!verified.valid) return wrong.push(`a delivery is not genuine: ${verified.reason}`)
  const { event, sequence, type } = verified
  const same = received.get(sequence) ?? new Map<string, number>()
  received.set(sequence, same.set(type, Date.parse(event.created_at)))
}
