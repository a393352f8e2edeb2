/** Sends runtime requests, as fast as a few connections can. */
import { Client } from "undici"

export interface Sent {
  readonly connections: number
  readonly operation: string
  readonly makeRequest: () => { readonly authorization: string; readonly body: string }
  readonly seconds: number
}

export interface Answers {
  readonly statuses: Record<number, number>
  readonly latencies: ReadonlyArray<number>
}

export const sendAll = async (
  base: string,
  { connections, makeRequest, operation, seconds }: Sent
): Promise<Answers> => {
  const clients = Array.from({ length: connections }, () => new Client(base))
  const statuses: Record<number, number> = {}
  const latencies: Array<number> = []
  const until = performance.now() + seconds * 1000
  const lane = (client: Client) =>
    new Promise<void>((resolve, reject) => {
      const next = () => {
        const began = performance.now()
        if (began >= until) return resolve()
        const { authorization, body } = makeRequest()
        const headers = { authorization, "content-type": "application/json" }
        client.dispatch(
          { method: "POST", path: `/api/v1/license/${operation}`, headers, body },
          {
            onRequestStart: () => {},
            onResponseStart: (_, status) => {
              statuses[status] = (statuses[status] ?? 0) + 1
            },
            onResponseData: () => {},
            onResponseEnd: () => {
              latencies.push(performance.now() - began)
              next()
            },
            onResponseError: (_, error) => reject(error)
          }
        )
      }
      next()
    })
  await Promise.all(clients.map(lane))
  await Promise.all(clients.map((client) => client.close()))
  return { statuses, latencies }
}
