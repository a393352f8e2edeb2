/**
 * Runs a request with an Idempotency-Key once, on any number of nodes, and replays its first answer. The key is held by an
 * advisory lock of a transaction that spans the request: it can not outlive its holder, and a repeat that comes meanwhile is
 * told so at once. What the operation itself writes joins that transaction, and the answer with it; a license's actor commits
 * elsewhere, so it writes the answer's row with the change (`KeptAnswer`). Either way a change never stands without its answer.
 */
import { Cause, Clock, Context, Effect, Exit, Layer, Option, Schema, Semaphore } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type HttpApiEndpoint, HttpApiSchema } from "effect/http-api"
import { SqlClient, SqlError } from "effect/sql"
import { statuses } from "../../api/ErrorCode.ts"
import { errorEnvelope, isRefusal, noteRefused, refuse } from "../../api/Failure.ts"
import { RequestContext } from "../../api/RequestContext.ts"
import { StoredResponse, type StoredResponseRow } from "../../api/StoredResponse.ts"
import { bytesOf } from "../../http/Intake.ts"
import { LicenseCredential } from "../../runtime/credentials/RuntimeAuthorization.ts"
import { sha256, sha256Hex } from "../../signing/Digest.ts"
import { MasterKey } from "../../signing/MasterKey.ts"
import { CurrentActor } from "../CurrentActor.ts"
import { Idempotency, idempotencyKeyMax, KeyRequired } from "./Idempotency.ts"
import { findResponse, insertResponses } from "./StoredResponses.ts"

const keptMillis = 86_400_000
/** Requests with a key that run at once on a node: each holds a connection for its whole time, so they must leave some over. */
const atOnceMax = 4
/** Answers that say nothing of the request itself are not kept: the next try may fare better. */
const passing = new Set<number>([401, 429, 500, 503])

const keyMissing = refuse(
  "IDEMPOTENCY_KEY_REQUIRED",
  "Send an Idempotency-Key header: a text of your own for this one change.",
  "Idempotency-Key"
)
const keyMalformed = refuse(
  "BAD_REQUEST",
  `An Idempotency-Key has 1 to ${idempotencyKeyMax} characters.`,
  "Idempotency-Key"
)
const inProgress = refuse(
  "IDEMPOTENCY_IN_PROGRESS",
  "A request with this Idempotency-Key is still running: try again.",
  "Idempotency-Key"
)
const reused = refuse(
  "IDEMPOTENCY_KEY_REUSED",
  "This Idempotency-Key was used with another body: use a new key.",
  "Idempotency-Key"
)

const reads = new Set(["GET", "HEAD", "OPTIONS"])

export const layer = Layer.effect(
  Idempotency,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const masterKey = yield* MasterKey
    const places = yield* Semaphore.make(atOnceMax)

    const once = Effect.fnUntraced(function* (handler: Handler, endpoint: HttpApiEndpoint.Top, key: string) {
      const now = yield* Clock.currentTimeMillis
      const forEver = Context.get(endpoint.annotations, KeyRequired)
      const scope = yield* scopeOf(key, forEver)
      const [lock] = yield* sql<{ readonly held: boolean }>`
        SELECT pg_try_advisory_xact_lock(${lockOf(scope)}::bigint) AS held`
      if (!lock!.held) return yield* inProgress
      const body_hash = yield* bodyHash
      const [found] = yield* findResponse(sql, scope, now)
      if (found !== undefined) {
        if (!Buffer.from(found.body_hash).equals(body_hash)) return yield* reused
        return replayed({ ...found, body: found.sealed ? yield* open(masterKey, found.body, scope) : found.body })
      }
      const rowOf = Effect.fnUntraced(function* (answer: Answer) {
        const sealed = !forEver
        const body = sealed ? yield* masterKey.seal(answer.body, aadOf(scope)) : answer.body
        const { status, content_type } = answer
        return {
          scope,
          body_hash,
          status,
          content_type: content_type ?? undefined,
          body,
          sealed,
          expires_at: forEver ? undefined : now + keptMillis,
          created_at: now
        }
      })
      return yield* run(sql, handler, endpoint, rowOf)
    })

    /** Nearly no request has a key: one without it goes on in the same step. */
    const withKey = (handler: Handler, endpoint: HttpApiEndpoint.Top) => {
      const keyless = Context.get(endpoint.annotations, KeyRequired) ? Effect.fail(keyMissing) : handler
      return Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }): Handler => {
        const key = headers["idempotency-key"] ?? ""
        if (key === "") return keyless
        if (key.length > idempotencyKeyMax) return Effect.fail(keyMalformed)
        return places
          .withPermit(sql.withTransaction(once(handler, endpoint, key)))
          .pipe(Effect.catchIf(SqlError.isSqlError, Effect.die))
      })
    }

    return Idempotency.of((handler, { endpoint }) =>
      reads.has(endpoint.method) ? handler : (withKey(handler, endpoint) as typeof handler)
    )
  })
)

/** What the middlewares inside this one make of a request. */
type Handler = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  unknown,
  HttpServerRequest.HttpServerRequest | HttpRouter.RouteContext
>

interface Answer {
  readonly status: number
  readonly content_type: string | null | undefined
  readonly body: Uint8Array
}

/** Runs the handler and sees to it that its answer is kept, by the operation's commit or by this transaction. */
const run = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  handler: Handler,
  endpoint: HttpApiEndpoint.Top,
  rowOf: (answer: Answer) => Effect.Effect<StoredResponseRow>
) {
  let drafted: Answer | undefined
  let committed = false
  const keeper = {
    rowOf: (result: unknown) =>
      Effect.flatMap(encodeResult(endpoint, result), (answer) => {
        drafted = answer
        return rowOf(answer)
      }),
    committed: () => {
      committed = true
    }
  }
  const exit = yield* Effect.exit(Effect.provideService(handler, StoredResponse, keeper))
  if (committed && drafted !== undefined) return responseOf(drafted)
  const answer = Exit.isSuccess(exit) ? answerOf(exit.value) : yield* refusedAnswer(Exit.failCause(exit.cause))
  if (!passing.has(answer.status)) yield* insertResponses(sql, [yield* rowOf(answer)])
  return Exit.isSuccess(exit) ? exit.value : responseOf(answer)
})

/** A refusal as the answer that it becomes; what is not worth keeping fails as it did. */
const refusedAnswer = Effect.fnUntraced(function* (exit: Exit.Exit<never, unknown>) {
  if (Exit.isSuccess(exit)) return exit.value
  const refusal = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  if (!isRefusal(refusal) || passing.has(statuses[refusal.code])) return yield* exit
  const { requestId } = yield* RequestContext
  yield* noteRefused(refusal.code)
  const body = JSON.stringify(errorEnvelope(refusal, requestId, yield* Clock.currentTimeMillis))
  return { status: statuses[refusal.code], content_type: "application/json", body: Buffer.from(body) }
})

const answerOf = (response: HttpServerResponse.HttpServerResponse): Answer => ({
  status: response.status,
  content_type: response.body._tag === "Uint8Array" ? response.body.contentType : undefined,
  body: response.body._tag === "Uint8Array" ? response.body.body : new Uint8Array()
})

const responseOf = ({ status, content_type, body }: Answer): HttpServerResponse.HttpServerResponse =>
  content_type == null
    ? HttpServerResponse.empty({ status })
    : HttpServerResponse.uint8Array(body, { status, contentType: content_type })

const replayed = (answer: Answer) => HttpServerResponse.setHeader(responseOf(answer), "idempotency-replayed", "true")

/** What the framework is going to answer for a handler's result, as bytes. Operations run by actors have one success each. */
const encodeResult = (endpoint: HttpApiEndpoint.Top, result: unknown): Effect.Effect<Answer> => {
  if (HttpServerResponse.isHttpServerResponse(result)) return Effect.succeed(answerOf(result))
  const [success] = endpoint.success as ReadonlySet<Schema.Codec<unknown, unknown>>
  if (success === undefined || HttpApiSchema.isNoContent(success.ast)) {
    return Effect.succeed({ status: 204, content_type: undefined, body: new Uint8Array() })
  }
  return Effect.map(Effect.orDie(Schema.encodeUnknownEffect(success)(result)), (encoded) => ({
    status: 200,
    content_type: "application/json",
    body: Buffer.from(JSON.stringify(encoded))
  }))
}

/**
 * Whose key it is: the credential's for this method and path; a renewal's is the license's, over all credentials. A license has
 * another credential with each license key: an offline envelope that was made for the one cannot be opened with the next.
 */
const scopeOf = Effect.fnUntraced(function* (key: string, ofLicense: boolean) {
  const { method, url } = yield* HttpServerRequest.HttpServerRequest
  const { params } = yield* HttpRouter.RouteContext
  const actor = yield* CurrentActor
  const license = yield* Effect.serviceOption(LicenseCredential)
  const credential = Option.match(license, {
    onNone: () => [actor.actor_type, actor.actor_id],
    onSome: ({ licenseId, keyHash }) => ["license", licenseId, keyHash]
  })
  return sha256(JSON.stringify(ofLicense ? ["renew", params["id"], key] : [...credential, method, pathOf(url), key]))
})

const pathOf = (url: string): string => url.split("?", 1)[0]!

const lockOf = (scope: Uint8Array): string => Buffer.from(scope).readBigInt64BE(0).toString()

const aadOf = (scope: Uint8Array): string => `idempotent_answers/${Buffer.from(scope).toString("hex")}`

const open = (masterKey: MasterKey["Service"], body: Uint8Array, scope: Uint8Array) =>
  Effect.orDie(masterKey.open(body, aadOf(scope)))

const bodyHash = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
  Effect.map(bytesOf(request), (body) => Buffer.from(sha256Hex(body), "hex"))
)
