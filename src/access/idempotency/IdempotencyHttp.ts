/**
 * Runs a request with an Idempotency-Key once, on any number of nodes, and replays its first response. A transaction that spans
 * the request holds an advisory lock on the key: the lock ends with the transaction, and a concurrent repeat is refused at once
 * unless the response is stored already.
 * The operation's writes and the stored response join that transaction. A license's actor commits elsewhere, so it writes the
 * response's row with the change (`StoredResponse`). Either way a change is never committed without its response.
 */
import { Cause, Clock, Context, Effect, Exit, Layer, Option, Schema, SchemaAST, Semaphore } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApiEndpoint, HttpApiSchema } from "effect/http-api"
import { SqlClient, SqlError } from "effect/sql"
import { statuses } from "../../contract/api/ErrorCode.ts"
import { errorEnvelope, isRefusal, noteRefused, type Refusal, refuse } from "../../contract/api/Failure.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { type ResponseRecorder, StoredResponse, type StoredResponseRow } from "../../contract/api/StoredResponse.ts"
import { mayPause } from "../../platform/postgres/driver/Transactions.ts"
import { isErasureMark } from "../../platform/postgres/queries/ErasureMark.ts"
import { makeDigest, sha256 } from "../../platform/signing/Digest.ts"
import { MasterKey } from "../../platform/signing/MasterKey.ts"
import { CurrentActor, CurrentProducts } from "../CurrentActor.ts"
import { ProductReach } from "../Management.ts"
import { bytesOf } from "../requests/Intake.ts"
import { Idempotency, idempotencyKeyMax, KeyRequired, replayedHeader, retentionMillis } from "./Idempotency.ts"
import { findResponse, insertResponses, sealedFor } from "./StoredResponses.ts"

/** Concurrent requests with a key per node. Each holds a connection while it runs, and other requests need connections, too. */
const concurrencyMax = 4
/** For reports: their exports wait for one of a few connections of reports, and no other request waits for them. */
const reportsMax = 2
/** Statuses of temporary refusals. Such responses are not stored, because a retry may succeed. */
const temporaryStatuses = new Set<number>([401, 429, 500, 503])

const keyMissing = refuse(
  "IDEMPOTENCY_KEY_REQUIRED",
  "Send an Idempotency-Key header: a text of your own for this one change.",
  "Idempotency-Key"
)
const keyMalformed = refuse(
  "BAD_REQUEST",
  `The Idempotency-Key is empty or too long: send 1 to ${idempotencyKeyMax} characters.`,
  "Idempotency-Key"
)
const inProgress = refuse(
  "IDEMPOTENCY_IN_PROGRESS",
  "A request with this Idempotency-Key is still running: try again.",
  "Idempotency-Key"
)
const erasedMeanwhile = refuse(
  "IDEMPOTENCY_IN_PROGRESS",
  "A customer was erased while the request was running, so its response was not stored and nothing was changed: try again.",
  "Idempotency-Key",
  { isTemporary: true }
)
const reused = refuse(
  "IDEMPOTENCY_KEY_REUSED",
  "This Idempotency-Key was used with another body or If-Match, or for other products: use a new key.",
  "Idempotency-Key"
)

const reads = new Set(["GET", "HEAD", "OPTIONS"])

export const layer = Layer.effect(
  Idempotency,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const masterKey = yield* MasterKey
    const permits = yield* Semaphore.make(concurrencyMax)
    const reportPermits = yield* Semaphore.make(reportsMax)

    const once = Effect.fnUntraced(function* (handler: Handler, endpoint: HttpApiEndpoint.Top, key: string) {
      const now = yield* Clock.currentTimeMillis
      const isRenewal = Context.get(endpoint.annotations, KeyRequired)
      const scope = yield* scopeOf(key, endpoint, isRenewal)
      const [lock] = yield* sql<{ readonly acquired: boolean; readonly mark: number | null }>`
        SELECT pg_try_advisory_xact_lock(${lockOf(scope)}::bigint) AS acquired, ${mayPause(sql)},
          (SELECT changes FROM erasure_progress) AS mark`
      const body_hash = yield* requestHash(endpoint)
      // Read after the attempt to lock, and before its result counts: a concurrent repeat holds the lock while it replays.
      const [stored] = yield* findResponse(sql, scope, now)
      if (stored !== undefined) {
        if (!Buffer.from(stored.body_hash).equals(body_hash)) return yield* reused
        const body = stored.sealed ? yield* Effect.orDie(masterKey.open(stored.body, sealedFor(scope))) : stored.body
        return HttpServerResponse.setHeader(responseOf({ ...stored, body }), replayedHeader, "true")
      }
      if (!lock!.acquired) return yield* inProgress
      const rowOf = Effect.fnUntraced(function* (response: EncodedResponse) {
        const { status, content_type } = response
        // What was missing for a refused renewal may exist later.
        const isPermanent = isRenewal && status < 400
        const sealed = !isPermanent
        const body = sealed ? yield* masterKey.seal(response.body, sealedFor(scope)) : response.body
        return {
          scope,
          body_hash,
          status,
          content_type: content_type ?? undefined,
          body,
          sealed,
          expires_at: isPermanent ? undefined : now + retentionMillis,
          created_at: now
        }
      })
      const store = Effect.fnUntraced(function* (row: StoredResponseRow) {
        yield* insertResponses(sql, [row])
        if (!(yield* isErasureMark(sql, lock!.mark ?? 0))) return yield* erasedMeanwhile
      })
      return yield* run(handler, endpoint, rowOf, store)
    })

    /** Most requests have no key, and continue without another effect. */
    const withKey = (handler: Handler, endpoint: HttpApiEndpoint.Top) => {
      const isRequired = Context.get(endpoint.annotations, KeyRequired)
      const withoutKey = isRequired ? Effect.fail(keyMissing) : handler
      const semaphore = endpoint.path.startsWith("/api/v1/reports/") ? reportPermits : permits
      return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request): Handler => {
        const key = request.headers["idempotency-key"]
        if (key === undefined || (key === "" && isRequired)) return withoutKey
        // A client that sends an empty key by mistake would otherwise repeat its change.
        if (key === "" || key.length > idempotencyKeyMax) return Effect.fail(keyMalformed)
        const run = semaphore
          .withPermit(sql.withTransaction(once(handler, endpoint, key)))
          .pipe(Effect.catchIf(SqlError.isSqlError, Effect.die))
        // A body that arrives slowly must not hold a connection.
        return Effect.andThen(bytesOf(request), run)
      })
    }

    return Idempotency.of((handler, { endpoint }) =>
      reads.has(endpoint.method) ? handler : (withKey(handler, endpoint) as typeof handler)
    )
  })
)

/** The endpoint's handler with the inner middlewares. */
type Handler = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  unknown,
  HttpServerRequest.HttpServerRequest | HttpRouter.RouteContext
>

interface EncodedResponse {
  readonly status: number
  readonly content_type: string | null | undefined
  readonly body: Uint8Array
}

/**
 * Runs the handler and stores its response, in the operation's own commit or in this transaction. A response that an actor commits
 * contains no erased data, because an erasure changes the license's revision. Other responses may contain data that was read
 * before an erasure.
 */
const run = Effect.fnUntraced(function* (
  handler: Handler,
  endpoint: HttpApiEndpoint.Top,
  rowOf: (response: EncodedResponse) => Effect.Effect<StoredResponseRow>,
  store: (row: StoredResponseRow) => Effect.Effect<void, Refusal<"IDEMPOTENCY_IN_PROGRESS"> | SqlError.SqlError>
) {
  let encoded: EncodedResponse | undefined
  let committed = false
  const rowOfResult = (result: unknown) =>
    Effect.flatMap(encodeResult(endpoint, result), (response) => {
      encoded = response
      return rowOf(response)
    })
  const recorder: ResponseRecorder = {
    rowOf: rowOfResult,
    store: (result) => Effect.flatMap(rowOfResult(result), store),
    committed: () => {
      committed = true
    },
    response: () => (committed && encoded !== undefined ? responseOf(encoded) : undefined)
  }
  const exit = yield* Effect.exit(Effect.provideService(handler, StoredResponse, recorder))
  const stored = recorder.response()
  if (stored !== undefined) return stored
  const response = Exit.isSuccess(exit) ? encodedOf(exit.value) : yield* encodeRefusal(exit.cause)
  if (!temporaryStatuses.has(response.status)) yield* store(yield* rowOf(response))
  return Exit.isSuccess(exit) ? exit.value : responseOf(response)
})

/** The response of a refusal. Temporary refusals and defects fail again. */
const encodeRefusal = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
  const refusal = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (!isRefusal(refusal) || refusal.isTemporary || temporaryStatuses.has(statuses[refusal.code]))
    return yield* Effect.failCause(cause)
  const context = yield* RequestContext
  noteRefused(context, refusal)
  const body = JSON.stringify(errorEnvelope(refusal, context.requestId, yield* Clock.currentTimeMillis))
  return { status: statuses[refusal.code], content_type: "application/json", body: Buffer.from(body) }
})

const encodedOf = ({ body, status }: HttpServerResponse.HttpServerResponse): EncodedResponse =>
  body._tag === "Uint8Array"
    ? { status, content_type: body.contentType, body: body.body }
    : { status, content_type: undefined, body: new Uint8Array() }

const responseOf = ({ status, content_type, body }: EncodedResponse): HttpServerResponse.HttpServerResponse =>
  content_type == null
    ? HttpServerResponse.empty({ status })
    : HttpServerResponse.uint8Array(body, { status, contentType: content_type })

/** Encodes a handler's result like the framework. Each operation that uses the recorder has exactly one success schema. */
const encodeResult = (endpoint: HttpApiEndpoint.Top, result: unknown): Effect.Effect<EncodedResponse> => {
  if (HttpServerResponse.isHttpServerResponse(result)) return Effect.succeed(encodedOf(result))
  const [success] = endpoint.success as ReadonlySet<Schema.Codec<unknown, unknown>>
  if (success === undefined || HttpApiSchema.isNoContent(success.ast)) {
    return Effect.succeed({ status: 204, content_type: undefined, body: new Uint8Array() })
  }
  return Effect.map(Effect.orDie(Schema.encodeUnknownEffect(success)(result)), (encoded) => ({
    status: statusOf(success.ast),
    content_type: "application/json",
    body: Buffer.from(JSON.stringify(encoded))
  }))
}

/** The status of a success: an annotation of the schema, or of its use as a response. */
const statusOf = (ast: SchemaAST.AST): number =>
  SchemaAST.resolveAt<number>("httpApiStatus")(ast) ?? Number(ast.context?.annotations?.["httpApiStatus"] ?? 200)

/** The scope of a key: credential, method and path. For a renewal the verb and the license alone, so that all credentials share the key. */
const scopeOf = Effect.fnUntraced(function* (key: string, endpoint: HttpApiEndpoint.Top, isRenewal: boolean) {
  const { params } = yield* HttpRouter.RouteContext
  const { actor_id, actor_type } = yield* CurrentActor
  const scope = isRenewal
    ? [verbOf(endpoint), params["id"], key]
    : [actor_type, actor_id, endpoint.method, routeOf(endpoint, params), key]
  return sha256(JSON.stringify(scope))
})

/** The path that the router understood: a proxy may write the same path with other percent signs. */
const routeOf = ({ path }: HttpApiEndpoint.Top, params: Readonly<Record<string, string | undefined>>): string =>
  path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""))

/** The end of its path, such as `renew`. */
const verbOf = ({ path }: HttpApiEndpoint.Top): string => path.slice(path.lastIndexOf("/") + 1)

const lockOf = (scope: Uint8Array): string => Buffer.from(scope).readBigInt64BE(0).toString()

/**
 * A repetition must have the same body and the same If-Match, and the same products where they alone decide what the response is
 * about. In all other operations the guard of the products has checked each record of the response.
 */
const requestHash = Effect.fnUntraced(function* ({ annotations }: HttpApiEndpoint.Top) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const digest = makeDigest()
  digest.update(yield* bytesOf(request))
  const ifMatch = request.headers["if-match"]
  if (ifMatch !== undefined) digest.update(`\nIf-Match: ${ifMatch}`)
  const products = yield* CurrentProducts
  if (products !== undefined && Context.get(annotations, ProductReach) === "rows")
    digest.update(`\nProducts: ${products.toSorted().join(" ")}`)
  return Buffer.from(digest.hex(), "hex")
})
