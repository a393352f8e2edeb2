/**
 * The load: a fixed number of connections, each sending its next request when the last one is answered. Requests go through
 * undici's dispatcher itself, because the driver shares the machine with what it measures: every microsecond it saves is
 * measured instead of spent.
 */
import { Client } from "undici"
import type { Verifier } from "../../infra/scripts/verify.ts"
import { consumedFeature, type Seat } from "./Licenses.ts"

export const operations = ["validate", "consume", "hot consume", "activate"] as const
export type Operation = (typeof operations)[number]

/** Of so many answers one is verified: envelope, canonical bytes, signature. */
const verifyEvery = 200

export interface Measured {
  readonly requestsPerSecond: number
  readonly p50: number
  readonly p99: number
  readonly answered: number
  readonly failed: number
  readonly verified: number
  /** The first failure, to be shown. */
  readonly failure?: string
}

interface LoadOptions {
  readonly base: string
  readonly operation: Operation
  readonly seats: ReadonlyArray<Seat>
  readonly connections: number
  readonly verify: Verifier
}

interface Tally {
  latencies: Array<number>
  failed: number
  verified: number
  failure: string | undefined
}

let sent = 0

const requestOf = (operation: Operation, { fingerprint }: Seat): { readonly path: string; readonly body: string } => {
  switch (operation) {
    case "validate":
      return { path: "/api/v1/license/validate", body: JSON.stringify({ fingerprint }) }
    case "activate":
      return { path: "/api/v1/license/activate", body: JSON.stringify({ fingerprint: `${fingerprint}-${sent++}` }) }
    default: {
      const body = { fingerprint, feature_code: consumedFeature, event_id: `event-${sent++}`, amount: 1 }
      return { path: "/api/v1/license/consume", body: JSON.stringify(body) }
    }
  }
}

/** Connections that stay open from round to round. */
export const openLoad = (options: LoadOptions) => {
  const clients = Array.from({ length: options.connections }, () => new Client(options.base, { pipelining: 1 }))
  return {
    /** Loads for so many seconds and says how it went. */
    run: async (seconds: number): Promise<Measured> => {
      const tally: Tally = { latencies: [], failed: 0, verified: 0, failure: undefined }
      const began = performance.now()
      const until = began + seconds * 1000
      await Promise.all(clients.map((client, lane) => drive(client, lane, until, options, tally)))
      return measured(tally, (performance.now() - began) / 1000)
    },
    close: () => Promise.all(clients.map((client) => client.close()))
  }
}

const measured = ({ latencies, failed, verified, failure }: Tally, seconds: number): Measured => {
  const sorted = Float64Array.from(latencies).sort()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  const answered = latencies.length
  const rate = { requestsPerSecond: Math.round(answered / seconds), p50: at(0.5), p99: at(0.99) }
  return { ...rate, answered, failed, verified, ...(failure === undefined ? undefined : { failure }) }
}

const drive = (client: Client, lane: number, until: number, options: LoadOptions, tally: Tally): Promise<void> =>
  new Promise((resolve, reject) => {
    const { operation, seats, connections, verify } = options
    let index = lane
    const fail = (reason: string) => {
      tally.failed++
      tally.failure ??= reason
    }
    const next = () => {
      const began = performance.now()
      if (began >= until) return resolve()
      const seat = seats[index % seats.length]!
      index += connections
      const { path, body } = requestOf(operation, seat)
      post(client, path, seat.authorization, body, {
        answered: (status, answer) => {
          if (status !== 200) fail(`${status} ${answer}`)
          else {
            seat.counted++
            if (tally.latencies.push(performance.now() - began) % verifyEvery === 1) {
              try {
                verify(answer)
                tally.verified++
              } catch (error) {
                return reject(error)
              }
            }
          }
          next()
        },
        broken: (error) => {
          seat.unsure++
          fail(String(error))
          setImmediate(next)
        }
      })
    }
    next()
  })

interface Outcome {
  readonly answered: (status: number, body: Buffer) => void
  readonly broken: (error: Error) => void
}

const post = (client: Client, path: string, authorization: string, body: string, outcome: Outcome) => {
  let status = 0
  let chunk: Buffer | undefined
  client.dispatch(
    { method: "POST", path, headers: { authorization, "content-type": "application/json" }, body },
    {
      onRequestStart: () => {},
      onResponseStart: (_, statusCode) => {
        status = statusCode
      },
      onResponseData: (_, data) => {
        chunk = chunk === undefined ? data : Buffer.concat([chunk, data])
      },
      onResponseEnd: () => outcome.answered(status, chunk ?? Buffer.alloc(0)),
      onResponseError: (_, error) => outcome.broken(error)
    }
  )
}
