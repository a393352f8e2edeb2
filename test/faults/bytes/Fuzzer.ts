/** Sends mutated requests over connections of their own to a service, and collects what is wrong with its answers. */
import { connect } from "node:net"
import { Effect } from "effect"
import { RandomSource } from "../../simulation/requests/RandomSource.ts"
import { faultOf, responsesIn } from "./Answers.ts"
import { mutated, valid } from "./Mutations.ts"
import type { Template } from "./Templates.ts"

export interface Findings {
  /** Requests that were sent, and responses by status; 0 counts connections that were closed without one. */
  requests: number
  readonly statuses: Map<number, number>
  readonly mutations: Map<string, number>
  readonly violations: Array<Violation>
}

interface Violation {
  readonly connection: number
  readonly what: string
  readonly sent: Buffer
}

interface Plan {
  readonly bytes: Buffer
  readonly names: ReadonlyArray<string>
  /** Ends without waiting for responses. */
  readonly isReset: boolean
  /** Where the bytes are divided into packets. */
  readonly cut: number
}

const pipelinedMax = 12
const connectionsAtOnce = 24
/** An answer may wait for a busy machine; the service's own limits are shorter. */
const answerMillisMax = 60_000
const violationsMax = 20

/** A connection's plan depends on the seed and its number only. */
const planOf = (templates: ReadonlyArray<Template>, seed: number, connection: number): Plan => {
  const random = new RandomSource(Math.imul(seed, 0x9e3779b1) + connection)
  const length = random.chance(0.4) ? random.between(2, pipelinedMax) : 1
  const parts = Array.from({ length }, (_, index) => {
    // Valid ones before a mutated one, so that it meets a connection in use.
    const template = random.pick(templates)
    return index < length - 1 && random.chance(0.5)
      ? { name: "nothing", bytes: valid(template) }
      : mutated(template, random)
  })
  const bytes = Buffer.concat(parts.map((part) => part.bytes))
  const cut = random.chance(0.2) ? random.between(0, bytes.length) : bytes.length
  return { bytes, names: parts.map(({ name }) => name), isReset: random.chance(0.05), cut }
}

/** Everything that the service sends until it closes the connection; undefined if it does not close it in time. */
const exchange = (port: number, { bytes, cut, isReset }: Plan) =>
  Effect.callback<Buffer | undefined>((resume) => {
    const received: Array<Buffer> = []
    const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => {
      socket.write(bytes.subarray(0, cut), () => {
        if (isReset) return socket.resetAndDestroy()
        setImmediate(() => socket.end(bytes.subarray(cut)))
      })
    })
    socket.on("data", (chunk) => received.push(chunk))
    // The service may close a connection whose bytes it refuses while they still arrive.
    socket.on("error", () => {})
    socket.on("close", () => resume(Effect.succeed(Buffer.concat(received))))
    return Effect.sync(() => socket.destroy())
  }).pipe(Effect.timeoutOrElse({ duration: answerMillisMax, orElse: () => Effect.succeed(undefined) }))

const count = <K>(counts: Map<K, number>, key: K) => counts.set(key, (counts.get(key) ?? 0) + 1)

const converse = Effect.fnUntraced(function* (port: number, plan: Plan, connection: number, findings: Findings) {
  const found = (what: string) => findings.violations.push({ connection, what, sent: plan.bytes })
  const received = yield* exchange(port, plan)
  findings.requests += plan.names.length
  for (const name of plan.names) count(findings.mutations, name)
  if (received === undefined) return void found(`the connection is not closed within ${answerMillisMax} ms`)
  const { responses, rest } = responsesIn(received, plan.bytes.includes("HEAD "))
  if (responses.length === 0) count(findings.statuses, 0)
  const leading = plan.names.findIndex((name) => name !== "nothing")
  for (const [index, response] of responses.entries()) {
    count(findings.statuses, response.status)
    if (index < leading && response.body.includes("The request is not valid HTTP"))
      found("a valid request has the response to what came after it")
    const fault = faultOf(response)
    if (fault !== undefined) found(fault.slice(0, 500))
  }
  if (rest.length > 0 && !plan.isReset) found(`an incomplete response: ${rest.toString("latin1").slice(0, 500)}`)
})

interface Options {
  readonly port: number
  readonly templates: ReadonlyArray<Template>
  readonly seed: number
  readonly requests: number
  /** The first connection; those before it are skipped. */
  readonly from?: number
  readonly told?: (findings: Findings) => Effect.Effect<void>
}

/** Until so many requests were sent, or too much is wrong. `told` is called after each thousandth connection. */
export const fuzzBytes = Effect.fnUntraced(function* (options: Options) {
  const { from = 0, port, requests, seed, templates, told = () => Effect.void } = options
  const findings: Findings = { requests: 0, statuses: new Map(), mutations: new Map(), violations: [] }
  let next = from
  const worker = Effect.gen(function* () {
    while (findings.requests < requests && findings.violations.length < violationsMax) {
      const connection = next++
      yield* converse(port, planOf(templates, seed, connection), connection, findings)
      if (connection % 1_000 === 999) yield* told(findings)
    }
  })
  yield* Effect.all(
    Array.from({ length: connectionsAtOnce }, () => worker),
    { concurrency: "unbounded", discard: true }
  )
  return findings
})
