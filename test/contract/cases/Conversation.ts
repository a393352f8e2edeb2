/**
 * Requests to a running service over a few persistent connections. Every answer must be documented: its status, its
 * code, and every member of its body.
 */
import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Pool } from "undici"
import type { Answer } from "../../support/http/Http.ts"
import { assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { faultsOf } from "./Oracle.ts"
import { type Operation, operations } from "./Surface.ts"

export interface Request {
  /** Ids for the path's parameters, not yet encoded. */
  readonly params?: { readonly [name: string]: string }
  /** With its question mark, as sent. */
  readonly query?: string
  /** Text and bytes are sent unchanged, other values as JSON. */
  readonly body?: unknown
  readonly headers?: { readonly [name: string]: string }
  /** The Authorization header; undefined: the admin token; null: none. */
  readonly authorization?: string | null | undefined
}

/** Connections to the service under test: enough to keep it busy, few enough to leave capacity to other tests. */
const connections = 6

export class Conversation extends Context.Service<
  Conversation,
  {
    /** Sends a request; fails the test if the answer is not documented. */
    ask(operation: Operation, request?: Request): Effect.Effect<Answer>
    /** Sends a request that must succeed, and returns its `data`. */
    data<A>(operationId: string, request?: Request): Effect.Effect<A>
  }
>()("licensing/test/contract/Conversation") {
  static readonly layer = Layer.effect(
    Conversation,
    Effect.gen(function* () {
      const { adminToken, baseUrl } = yield* TestServer
      const pool = yield* Effect.acquireRelease(
        Effect.sync(() => new Pool(baseUrl, { connections })),
        (pool) => Effect.promise(() => pool.destroy())
      )

      const ask = Effect.fnUntraced(function* (operation: Operation, request: Request = {}) {
        const { params = {}, query = "", body, headers, authorization = `Bearer ${adminToken}` } = request
        const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name] ?? "unknown"))
        const answer = yield* exchange(pool, {
          method: operation.method,
          path: path + query,
          headers: {
            ...(authorization === null ? undefined : { authorization }),
            ...(body === undefined ? undefined : { "content-type": "application/json" }),
            ...headers
          },
          body: body === undefined || body instanceof Uint8Array || typeof body === "string" ? body : textOf(body)
        })
        assertDocumented(operation, answer)
        return answer
      })

      const data = Effect.fnUntraced(function* (operationId: string, request?: Request) {
        const answer = yield* ask(operationOf(operationId), request)
        assert.isBelow(answer.status, 300, `${operationId} answers ${answer.text}`)
        return (answer.json as { readonly data: never } | undefined)?.data as never
      })

      return Conversation.of({ ask, data })
    })
  )
}

export const operationOf = (id: string): Operation => {
  const operation = operations.find((operation) => operation.id === id)
  assert.isDefined(operation, `there is no operation ${id}`)
  return operation
}

/** A part of a body as JSON text: numbers that JavaScript cannot represent, members that it hides. */
export class Raw {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** A value as JSON, with lone surrogates escaped and raw parts unchanged. */
export const textOf = (value: unknown): string => {
  if (value instanceof Raw) return value.text
  if (Array.isArray(value)) return `[${value.map(textOf).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${textOf(member)}`).join(",")}}`
}

interface Outgoing {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string | Uint8Array | undefined
}

const exchange = (pool: Pool, { method, path, headers, body }: Outgoing): Effect.Effect<Answer> =>
  Effect.promise(() =>
    pool
      .request({ method: method as "GET", path, headers, ...(body === undefined ? undefined : { body }) })
      .then((response) =>
        response.body.bytes().then((bytes): Answer => {
          const text = Buffer.from(bytes).toString()
          const isJson = response.headers["content-type"] === "application/json" && text !== ""
          const json: unknown = isJson ? JSON.parse(text) : undefined
          const error = (json as { error?: Answer["error"] } | undefined)?.error ?? {}
          const headers = response.headers as Answer["headers"]
          return { status: response.statusCode, headers, text, bytes, json, error }
        })
      )
  )

/** The operation must list the status, the status the code, and the schema all members of the body. */
const assertDocumented = (operation: Operation, answer: Answer): void => {
  const shown = `${operation.id} answers ${answer.status} ${answer.text.slice(0, 500)}`
  assert.notStrictEqual(answer.status, 500, shown)
  const documented = operation.answers.get(answer.status)
  assert.isDefined(documented, `undocumented status: ${shown}`)
  const type = String(answer.headers["content-type"])
  if (answer.status >= 400) {
    assert.include(documented.codes, answer.error.code, `undocumented code: ${shown}`)
    assertRefused(answer, answer.status, answer.error.code!)
  } else if (documented.media.length === 0) {
    assert.strictEqual(answer.text, "", shown)
  } else {
    assert.include(documented.media, type, shown)
    const { schema } = documented
    if (type !== "application/json" || schema === undefined) return
    assert.deepStrictEqual(faultsOf(schema, answer.json), [], `not as documented: ${shown}`)
  }
}
