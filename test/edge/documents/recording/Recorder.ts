/**
 * Records examples from a run of the whole service, for the documents. The clock stands still during a request, and all random
 * bytes come from the request's name, so that each run gives the same bytes.
 */
import { createHash } from "node:crypto"
import { assert } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { WebCrypto } from "effect/crypto"
import { SqlClient } from "effect/sql"
import type { Examples } from "../../../../src/edge/documents/Examples.ts"
import { type Operation, operations } from "../../../contract/cases/Surface.ts"
import { byMail } from "../../../licensing/portal/Visitor.ts"
import { Database } from "../../../support/database/Database.ts"
import type { Answer } from "../../../support/http/Http.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { Deliveries } from "./Deliveries.ts"
import { TimeWork } from "./TimeWork.ts"

interface Exchange {
  /** The ids in the path. */
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The Authorization header, if it is not the admin token; null for none. */
  readonly authorization?: string | null
  /** Whether it is sent at the time of the request before it, and not a minute later. */
  readonly atOnce?: boolean
}

interface Identified {
  readonly id: string
}

export class Recorder extends Context.Service<
  Recorder,
  {
    /** Sends a request that must succeed, keeps both as the operation's example, and returns the `data`. */
    record<A = Identified>(operationId: string, exchange?: Exchange): Effect.Effect<A>
    /** Sends a request that must succeed, and returns the `data`. */
    send<A = Identified>(operationId: string, exchange?: Exchange): Effect.Effect<A>
    /** Sends a request that must be refused with this code, and keeps the refusal as the code's example. */
    refuse(code: string, operationId: string, exchange?: Exchange): Effect.Effect<void>
    /** Lets days pass without a request, with what a node does meanwhile. */
    passDays(days: number): Effect.Effect<void>
    /** Gives up the open bulk jobs, as if ten nodes had died with them. */
    readonly failBulkJobs: Effect.Effect<void>
    /** Carries out the open bulk jobs. */
    readonly runBulkJobs: Effect.Effect<void>
    /** Writes the node's sign of life. */
    readonly signOfLife: Effect.Effect<void>
    /** Signs in at the customer's page. Returns the cookie. */
    signInAtPage(license_key: string): Effect.Effect<string>
    /** Asks for a new key at the customer's page. */
    requestKeyAtPage(cookie: string, licenseId: string): Effect.Effect<void>
    /** What the command `keys rotate` does. */
    readonly rotateSigningKey: Effect.Effect<void>
    /** What was recorded. */
    readonly examples: Effect.Effect<Examples>
  }
>()("licensing/test/documents/Recorder") {
  static readonly layer = Layer.unwrap(
    Effect.sync(() => {
      const run = new Run()
      const clock = Layer.sync(Clock.Clock, () => clockAt(() => run.millis))
      const advance = (seconds: number) =>
        Effect.sync(() => {
          run.millis += seconds * 1_000
        })
      // Only wrong credentials are limited, for the example of RATE_LIMITED.
      return recorderOf(run).pipe(
        Layer.provide([Deliveries.layer, TimeWork.layer]),
        Layer.provide(TestServer.layerWithClock({ ...byMail, rateFailures: 1, baseUrl }, { clock, advance })),
        Layer.provide(clock),
        Layer.provide(Database.layerUrl),
        Layer.provide(
          WebCrypto.layer({ getRandomValues: run.fill } as unknown as Parameters<typeof WebCrypto.layer>[0])
        )
      )
    })
  )
}

const baseUrl = "https://licenses.example.com"
const minuteMillis = 60_000
const dayMillis = 86_400_000

/** The time and the random bytes of a run. */
class Run {
  millis = Date.parse("2030-01-31T09:00:00Z")
  private label = "start"
  private drawn = 0

  /** Moves on to another request, which has random bytes of its own. */
  begin(label: string, waitMillis: number): void {
    this.millis += waitMillis
    this.label = label
    this.drawn = 0
  }

  readonly fill = (bytes: Uint8Array): Uint8Array => {
    for (let at = 0; at < bytes.length; at += 32)
      bytes.set(this.draw().subarray(0, Math.min(32, bytes.length - at)), at)
    const mark = marks[bytes.length]
    if (mark !== undefined) bytes.set(mark)
    return bytes
  }

  private draw(): Uint8Array {
    return createHash("sha256")
      .update(`${this.label} ${++this.drawn}`)
      .digest()
  }
}

const keyAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

/** How secrets begin, so that everyone sees that they are examples: license keys as LK-EXAMP, tokens and secrets as Example. */
const marks: { readonly [length: number]: Uint8Array } = {
  28: Uint8Array.from("EXAMP", (letter) => keyAlphabet.indexOf(letter)),
  32: Buffer.from("ExampleExample00", "base64")
}

/** The machine's clock, whose time of day stands still. */
const clockAt = (millis: () => number): Clock.Clock => {
  const machine = Clock.Clock.defaultValue()
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: () => BigInt(millis()) * 1_000_000n,
    currentTimeNanos: Effect.sync(() => BigInt(millis()) * 1_000_000n),
    monotonicTimeNanosUnsafe: () => machine.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: machine.monotonicTimeNanos,
    sleep: (duration) => machine.sleep(duration)
  }
}

const recorderOf = (run: Run) =>
  Layer.effect(
    Recorder,
    Effect.gen(function* () {
      const server = yield* TestServer
      const { deliver, kept } = yield* Deliveries
      const { bulkJobs, rotateSigningKey, signOfLife, sweep } = yield* TimeWork
      const sql = yield* SqlClient.SqlClient
      const examples: Mutable = { operations: {}, refusals: {} }
      const sent = new Map<string, number>()

      const ask = Effect.fnUntraced(function* (operation: Operation, exchange: Exchange) {
        const { authorization, body, headers, params = {}, query } = exchange
        const times = (sent.get(operation.id) ?? 0) + 1
        sent.set(operation.id, times)
        run.begin(`${operation.id} ${times}`, exchange.atOnce === true ? 0 : minuteMillis)
        const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name]!))
        const answer = yield* server.send({
          method: operation.method,
          path: query === undefined ? path : `${path}?${new URLSearchParams(query)}`,
          ...(body === undefined ? undefined : { body }),
          anonymous: authorization === null,
          headers: { ...(typeof authorization === "string" ? { authorization } : undefined), ...headers }
        })
        yield* deliver
        return answer
      })

      const send = Effect.fnUntraced(function* (operationId: string, exchange: Exchange = {}) {
        const operation = operationOf(operationId)
        const answer = yield* ask(operation, exchange)
        assert.isBelow(answer.status, 300, `${operationId} is answered with ${answer.text}`)
        return { answer, operation, data: (answer.json as { readonly data?: never } | undefined)?.data as never }
      })

      const atPage = Effect.fnUntraced(function* (path: string, body: object, headers: Record<string, string> = {}) {
        const answer = yield* server.send({
          method: "POST",
          path: `/portal/api${path}`,
          body,
          anonymous: true,
          headers: { "sec-fetch-site": "same-origin", ...headers }
        })
        assert.isBelow(answer.status, 300, `${path} is answered with ${answer.text}`)
        yield* deliver
        return answer
      })

      return Recorder.of({
        send: (operationId, exchange) => Effect.map(send(operationId, exchange), ({ data }) => data),
        record: (operationId, exchange = {}) =>
          Effect.map(send(operationId, exchange), ({ answer, data }) => {
            const example = examples.operations[operationId] ?? requestOf(exchange)
            examples.operations[operationId] = example
            if (answer.bytes.length > 0) addResponse(operationId, example, answer)
            return data
          }),
        refuse: Effect.fnUntraced(function* (code, operationId, exchange = {}) {
          const answer = yield* ask(operationOf(operationId), exchange)
          assert.strictEqual(answer.error.code, code, answer.text)
          const isSigned = "signature" in (answer.json as object)
          examples.refusals[isSigned ? `${code}_SIGNED` : code] = answer.json
        }),
        passDays: (days) =>
          Effect.suspend(() => {
            run.begin(`day ${run.millis}`, days * dayMillis)
            return Effect.andThen(sweep, deliver)
          }),
        failBulkJobs: Effect.suspend(() => {
          run.begin("failed bulk jobs", minuteMillis)
          const attempt = Effect.orDie(sql`UPDATE bulk_jobs SET attempts = 10 WHERE ended_at IS NULL`)
          return Effect.andThen(attempt, Effect.andThen(bulkJobs, deliver))
        }),
        runBulkJobs: Effect.suspend(() => {
          run.begin("bulk jobs", minuteMillis)
          return Effect.andThen(bulkJobs, deliver)
        }),
        signOfLife: Effect.suspend(() => {
          run.begin("sign of life", minuteMillis)
          return signOfLife
        }),
        signInAtPage: Effect.fnUntraced(function* (license_key) {
          run.begin(`sign-in with ${license_key}`, minuteMillis)
          const { headers } = yield* atPage("/sign-in/key", { license_key })
          return String(headers["set-cookie"]).split(";")[0]!
        }),
        requestKeyAtPage: Effect.fnUntraced(function* (cookie, licenseId) {
          run.begin("key at the page", minuteMillis)
          yield* atPage(`/licenses/${licenseId}/key`, {}, { cookie })
        }),
        rotateSigningKey: Effect.suspend(() => {
          run.begin("keys rotate", minuteMillis)
          return Effect.andThen(rotateSigningKey, deliver)
        }),
        examples: Effect.sync(() => ({ ...examples, deliveries: deliveriesOf(examples, kept) }))
      })
    })
  )

/** The deliveries of the endpoint whose creation is an example: its secret verifies them. */
const deliveriesOf = ({ operations }: Mutable, kept: Deliveries["Service"]["kept"]): Examples["deliveries"] => {
  const created = operations["createWebhook"]?.responses[201]?.["application/json"]
  const { secret } = (created as { readonly data: { readonly secret: string } }).data
  return { secret, byType: Object.fromEntries([...kept].sort(([a], [b]) => (a < b ? -1 : 1))) }
}

interface Mutable {
  readonly operations: Record<string, Examples["operations"][string]>
  readonly refusals: Record<string, unknown>
}

const operationOf = (id: string): Operation => {
  const operation = operations.find((operation) => operation.id === id)
  assert.isDefined(operation, `there is no operation ${id}`)
  return operation
}

const requestOf = ({ body, params, query }: Exchange): Examples["operations"][string] => ({
  ...((params ?? query) && { parameters: { ...params, ...query } }),
  ...(body !== undefined && { body }),
  responses: {}
})

const addResponse = (operationId: string, { responses }: Examples["operations"][string], answer: Answer): void => {
  const type = String(answer.headers["content-type"])
  const byStatus = responses as Record<string, Record<string, unknown>>
  const byType = byStatus[answer.status] ?? {}
  byStatus[answer.status] = byType
  assert.notProperty(byType, type, `${operationId} is recorded twice`)
  byType[type] = type === "application/json" ? answer.json : answer.text
}
