/**
 * The typed client for other Effect services: every operation of the contract under its operationId, with its declared refusals as
 * typed errors. It retries what is safe to repeat, keeps the signed bytes, and traces. It imports no server code.
 */
import { Context, type Duration, Effect, Layer, Option, type Redacted, Schema, Stream } from "effect"
import { HttpClient, HttpClientError, type HttpClientRequest, type HttpClientResponse } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { Api } from "../../Api.ts"
import type { Refusal } from "../../contract/api/Failure.ts"
import type { Page } from "../../contract/api/Paging.ts"
import { attempts, type TimedOut } from "./Attempts.ts"
import { Call } from "./Call.ts"
import { authorization, type Credentials } from "./Credentials.ts"
import { type OperationId, operations, type Refusals, type Request, type Success } from "./Operations.ts"
import { keepTag, tagOf } from "./RecordTags.ts"
import { withBytes, withRefusalBytes } from "./SignedBytes.ts"

export type { Code } from "../../contract/api/ErrorCode.ts"
export type { Refusal } from "../../contract/api/Failure.ts"
export type { Page } from "../../contract/api/Paging.ts"
export { TimedOut } from "./Attempts.ts"
export type { OperationId, Refusals, Request, Success } from "./Operations.ts"

export interface ClientOptions {
  /** For example `https://licenses.example.com`. */
  readonly baseUrl: string
  /** Authorizes management operations. */
  readonly token?: Redacted.Redacted<string>
  /** Authorizes runtime operations; `Client.withLicenseKey` gives one for some calls. */
  readonly licenseKey?: Redacted.Redacted<string>
  /** How long one attempt may take; 15 seconds unless given. */
  readonly timeout?: Duration.Input
  /** How often a request is sent at most; 4 times unless given. Only what is safe to repeat is sent again. */
  readonly attemptsMax?: number
}

/** What any operation can fail with beside its refusals: no usable response came. */
export type ClientError = HttpClientError.HttpClientError | Schema.SchemaError | TimedOut

type Arguments<A> = unknown extends A ? [] : [request: A]

export type Operations = {
  readonly [Id in OperationId]: (
    ...request: Arguments<Request<Id>>
  ) => Effect.Effect<Success<Id>, Refusals<Id> | ClientError>
}

export class Client extends Context.Service<Client, Operations>()("licensing/clients/client/Client") {
  /** A client of the service at `baseUrl`, over the given HTTP client. */
  static readonly layer = (options: ClientOptions): Layer.Layer<Client, never, HttpClient.HttpClient> =>
    Layer.effect(Client, make(options)).pipe(Layer.provide(authorization))

  /** Sends this token with the management operations within. */
  static readonly withToken = (token: Redacted.Redacted<string>) => withCall({ token })

  /** Sends this key with the runtime operations within. */
  static readonly withLicenseKey = (licenseKey: Redacted.Redacted<string>) => withCall({ licenseKey })

  /**
   * Makes the one change within safe to repeat, also by another process: the service gives its first response again. Without it each
   * call has a key of its own, which its retries share.
   */
  static readonly withIdempotencyKey = (idempotencyKey: string) => withCall({ idempotencyKey })

  /**
   * Makes the one update (PATCH) within only if the record is as it was read: `record` is the result of its get or update operation.
   * The update fails with CONFLICT if somebody else has changed the record meanwhile, or if the record came without an ETag. Any other
   * change within is a defect, because the service would make it unconditionally.
   */
  static readonly ifUnchanged =
    (record: object) =>
    <A, E, R>(change: Effect.Effect<A, E, R>): Effect.Effect<A, E | Refusal<"CONFLICT">, R> =>
      Effect.flatMap(tagOf(record), (ifMatch) => withCall({ ifMatch })(change))

  /** The rows of all pages of a list, in order; the next page is fetched when it is needed. */
  static readonly all = <A, E, C, Q extends { readonly query?: { readonly cursor?: C } }>(
    list: (request: Q) => Effect.Effect<Page<A, C>, E>,
    request: Q
  ): Stream.Stream<A, E> =>
    Stream.paginate(request, (asked: Q) =>
      Effect.map(list(asked), ({ items, next }) => [
        items,
        next === undefined ? Option.none() : Option.some({ ...request, query: { ...request.query, cursor: next } })
      ])
    )
}

/** Handles the refusals with a code; the others stay in the error type. */
export const catchCode =
  <const C extends string, E, A2, E2, R2>(
    code: C,
    handle: (refusal: Extract<E, { readonly code: C }>) => Effect.Effect<A2, E2, R2>
  ) =>
  <A, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A | A2, Exclude<E, { readonly code: C }> | E2, R | R2> =>
    Effect.catch(
      self,
      (error): Effect.Effect<A2, Exclude<E, { readonly code: C }> | E2, R2> =>
        hasCode<E, C>(error, code) ? handle(error) : Effect.fail(error as Exclude<E, { readonly code: C }>)
    )

const hasCode = <E, C extends string>(error: E, code: C): error is Extract<E, { readonly code: C }> =>
  typeof error === "object" && error !== null && (error as { readonly code?: unknown }).code === code

const withCall =
  (more: Credentials & { readonly idempotencyKey?: string; readonly ifMatch?: string }) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Call, (call) => Effect.provideService(effect, Call, { ...call, ...more }))

type Untyped = (request: object) => Effect.Effect<unknown, HttpClientError.HttpClientError>

const make = Effect.fnUntraced(function* ({ attemptsMax = 4, baseUrl, timeout = "15 seconds", ...own }: ClientOptions) {
  const derived = yield* HttpApiClient.make(Api, { baseUrl, transformClient })
  const grouped = derived as unknown as { readonly [group: string]: { readonly [endpoint: string]: Untyped } }
  const client = operations.map(({ endpoint, group, id }) => {
    const send = grouped[group]?.[endpoint] as Untyped
    const call = (request: object = {}) =>
      attempts({ id, own, timeout, attemptsMax }, (idempotencyKey) => {
        const headers = { "idempotency-key": idempotencyKey }
        return send({ query: {}, payload: {}, headers, ...request }).pipe(
          Effect.tap(keepTag),
          Effect.flatMap(withBytes),
          Effect.catch((error) => Effect.flatMap(withRefusalBytes(error), Effect.fail)),
          Effect.catch(ofResponse)
        )
      }).pipe(Effect.withSpan(id, { kind: "client" }))
    return [id, call]
  })
  return Client.of(Object.fromEntries(client))
})

/** A response that is not one of the service's, for example of a proxy, is another failure than a request that cannot be encoded. */
const ofResponse = <E>(cause: E): Effect.Effect<never, E | HttpClientError.HttpClientError> =>
  Effect.flatMap(Call, ({ received: response }): Effect.Effect<never, E | HttpClientError.HttpClientError> => {
    if (!Schema.isSchemaError(cause) || response === undefined) return Effect.fail(cause)
    const { request } = response
    const reason = new HttpClientError.DecodeError({ request, response, cause })
    return Effect.fail(new HttpClientError.HttpClientError({ reason }))
  })

const transformClient = (http: HttpClient.HttpClient) =>
  http.pipe(HttpClient.tapRequest(checkGuard), HttpClient.tap(keep))

/** The service takes If-Match with PATCH. */
const checkGuard = ({ method }: HttpClientRequest.HttpClientRequest) =>
  Effect.flatMap(Call, ({ ifMatch }) =>
    ifMatch === undefined || method === "GET" || method === "PATCH"
      ? Effect.void
      : Effect.die(new TypeError("Client.ifUnchanged guards updates (PATCH) only."))
  )

/** Keeps the response of the call that is going on. */
const keep = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.map(Call, (call) => {
    call.received = response
  })
