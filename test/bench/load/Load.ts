/**
 * The load: a fixed number of connections, each sending its next request after the response to the last one. Requests
 * use undici's dispatcher directly, because the driver shares the machine with what it measures: every microsecond that
 * it saves is available to the service.
 */
import { Client } from "undici"
import type { Verifier } from "../../support/http/Verifier.ts"
import { connect } from "./Connect.ts"
import { consumedFeature, type Seat } from "./Licenses.ts"

export const operations = ["validate", "consume", "hot consume", "activate", "lease"] as const
export type Operation = (typeof operations)[number]

/** One of this many responses is verified: envelope, canonical bytes, signature. */
const verifyEvery = 200

export interface Measured {
  readonly requestsPerSecond: number
  readonly p50: number
  readonly p99: number
  readonly answered: number
  readonly failed: number
  readonly verified: number
  /** The first failure, for display. */
  readonly failure?: string
  /** The failed responses, by their code. */
  readonly refused: Readonly<Record<string, number>>
}

/** A service, and the licenses that are used there. */
export interface LoadTarget {
  readonly base: string
  readonly seats: ReadonlyArray<Seat>
}

interface LoadOptions {
  /** Connections are distributed round-robin. */
  readonly places: ReadonlyArray<LoadTarget>
  readonly operation: Operation
  readonly connections: number
  readonly verify: Verifier
}

interface Tally {
  latencies: Array<number>
  failed: number
  verified: number
  failure: string | undefined
  readonly refused: Record<string, number>
}

let sent = 0

interface SentRequest {
  readonly path: string
  readonly body: object
}

/** The sequence of requests that a lane sends to one license; each request gets the previous response. */
type Visit = (seat: Seat, lane: number) => Generator<SentRequest, void, Buffer>

const visits: Record<Operation, Visit> = {
  *validate({ fingerprint }) {
    yield { path: "/api/v1/license/validate", body: { fingerprint } }
  },
  *activate({ fingerprint }) {
    yield { path: "/api/v1/license/activate", body: { fingerprint: `${fingerprint}-${sent++}` } }
  },
  consume,
  "hot consume": consume,
  *lease({ fingerprint }, lane) {
    // A returning machine: the users of floating seats are known by their second day.
    const checkout = { path: "/api/v1/license/floating/checkout", body: { fingerprint: `${fingerprint}-${lane}` } }
    const body = { lease_token: leaseTokenOf(yield checkout) }
    yield { path: "/api/v1/license/floating/heartbeat", body }
    yield { path: "/api/v1/license/floating/checkin", body }
  }
}

function* consume({ fingerprint }: Seat): Generator<SentRequest, void, Buffer> {
  const body = { fingerprint, feature_code: consumedFeature, event_id: `event-${sent++}`, amount: 1 }
  yield { path: "/api/v1/license/consume", body }
}

const tokenMember = '"lease_token":"'

/** The token in the response to a checkout, found without reading the rest. */
const leaseTokenOf = (answer: Buffer): string => {
  const begin = answer.indexOf(tokenMember) + tokenMember.length
  return answer.toString("utf8", begin, answer.indexOf('"', begin))
}

/** Connections that stay open between rounds. */
export const openLoad = (options: LoadOptions) => {
  const clients = Array.from(
    { length: options.connections },
    (_, lane) => new Client(targetOf(lane, options).base, { pipelining: 1, connect })
  )
  return {
    /**
     * Runs the load for the given seconds and returns the measurement: at the maximum rate, or at most the given
     * requests a second.
     */
    run: async (seconds: number, perSecond = Number.POSITIVE_INFINITY): Promise<Measured> => {
      const tally: Tally = { latencies: [], failed: 0, verified: 0, failure: undefined, refused: {} }
      const began = performance.now()
      const until = began + seconds * 1000
      const pauseMillis = (1000 * clients.length) / perSecond
      await Promise.all(clients.map((client, lane) => drive(client, lane, { until, pauseMillis }, options, tally)))
      return measured(tally, (performance.now() - began) / 1000)
    },
    close: () => Promise.all(clients.map((client) => client.close()))
  }
}

const targetOf = (lane: number, { places }: LoadOptions): LoadTarget => places[lane % places.length]!

const measured = ({ latencies, failed, verified, failure, refused }: Tally, seconds: number): Measured => {
  const sorted = Float64Array.from(latencies).sort()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  const answered = latencies.length
  const rate = { requestsPerSecond: Math.round(answered / seconds), p50: at(0.5), p99: at(0.99) }
  return { ...rate, answered, failed, verified, refused, ...(failure === undefined ? undefined : { failure }) }
}

interface Pace {
  readonly until: number
  /** The minimum time between two requests of a connection; 0 = none. */
  readonly pauseMillis: number
}

const drive = (client: Client, lane: number, pace: Pace, options: LoadOptions, tally: Tally): Promise<void> =>
  new Promise((resolve, reject) => {
    const { until, pauseMillis } = pace
    const { operation, places, connections, verify } = options
    const { seats } = targetOf(lane, options)
    let index = Math.floor(lane / places.length)
    const fail = (reason: string) => {
      tally.failed++
      tally.failure ??= reason
    }
    // Connections send at staggered times, so that the requests are spread evenly.
    let due = performance.now() + (pauseMillis * lane) / options.connections
    const next = () => {
      const wait = due - performance.now()
      if (pauseMillis === 0 || wait < 1) begin()
      else setTimeout(begin, wait)
    }
    const begin = () => {
      // A visit that has begun is completed, so that no seat stays taken.
      if (performance.now() >= until) return resolve()
      due += pauseMillis
      const seat = seats[index % seats.length]!
      index += connections / places.length
      const visit = visits[operation](seat, lane)
      send(seat, visit, visit.next())
    }
    const send = (seat: Seat, visit: ReturnType<Visit>, { done, value }: IteratorResult<SentRequest, void>) => {
      if (done === true) return next()
      const began = performance.now()
      post(client, value.path, seat.authorization, JSON.stringify(value.body), {
        answered: (status, answer) => {
          if (status !== 200) {
            fail(`${status} ${answer}`)
            const code = codeOf(status, answer)
            tally.refused[code] = (tally.refused[code] ?? 0) + 1
            return next()
          }
          seat.counted++
          if (tally.latencies.push(performance.now() - began) % verifyEvery === 1) {
            try {
              verify(answer)
              tally.verified++
            } catch (error) {
              return reject(error)
            }
          }
          send(seat, visit, visit.next(answer))
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

const codeOf = (status: number, answer: Buffer): string =>
  /"code":"([A-Z_]+)"/.exec(answer.toString())?.[1] ?? String(status)

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
