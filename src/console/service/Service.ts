/** The service as its typed client gives it, in effects that the page runs. */
import { Clock, type Duration, Effect, Layer, Option, type Redacted, Semaphore } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { Atom } from "effect/reactivity"
import { statuses } from "../../api/ErrorCode.ts"
import { isRefusal } from "../../api/Failure.ts"
import {
  Client,
  type ClientError,
  type OperationId,
  type Refusals,
  type Request,
  type Success
} from "../../client/Client.ts"
import { service } from "./Address.ts"
import { withOpenKey } from "./OpenKeys.ts"
import { farewell, renewed } from "./Provider.ts"
import { registry, renew, type Session, session, signOut, type Tokens } from "./Session.ts"

type Token = Effect.Effect<Redacted.Redacted<string>>

const clientOf = (token: Token, attemptsMax = 2) =>
  Client.layer({ baseUrl: service, attemptsMax }).pipe(
    Layer.provide(
      Layer.effect(
        HttpClient.HttpClient,
        Effect.map(
          HttpClient.HttpClient,
          HttpClient.mapRequestEffect((request) =>
            Effect.map(token, (current) => HttpClientRequest.bearerToken(request, current))
          )
        )
      )
    ),
    Layer.provide(FetchHttpClient.layer),
    // The page records no traces, so that requests need no trace headers.
    Layer.provideMerge(Layer.succeed(HttpClient.TracerPropagationEnabled, false))
  )

/** Runs effects with the client of who is signed in. Who signs in next has another client: nothing of the earlier one stays. */
export const runtime = Atom.runtime((get) => clientOf(tokenOf(get(session))))

/** A token that expires before then is renewed first. */
const renewalMillis = 30_000
const renewing = Semaphore.makeUnsafe(1)
/** After a failure the token is used as it is for so long, so that not every request waits for a provider that is down. */
const restMillis = 10_000
const restsUntil = new WeakMap<object, number>()

/** The session's token, renewed if it is about to expire and the provider allows that. */
const currentToken = Effect.fnUntraced(function* (holder: { tokens: Tokens }) {
  if (yield* isFresh(holder)) return holder.tokens.access
  return yield* renewing.withPermit(
    Effect.gen(function* () {
      const { refresh } = holder.tokens
      // Another request may have renewed it meanwhile.
      if (refresh === undefined || (yield* isFresh(holder)) || (yield* isResting(holder))) return holder.tokens.access
      const tokens = yield* Effect.option(Effect.provide(renewed(refresh), FetchHttpClient.layer))
      // Otherwise the service refuses the token once it has expired, which ends the session.
      if (Option.isSome(tokens)) renew(holder, tokens.value)
      else restsUntil.set(holder, (yield* Clock.currentTimeMillis) + restMillis)
      return holder.tokens.access
    })
  )
})

const isFresh = ({ tokens: { expiresAt, refresh } }: { readonly tokens: Tokens }) =>
  Effect.map(
    Clock.currentTimeMillis,
    (millis) => refresh === undefined || expiresAt === undefined || millis < expiresAt - renewalMillis
  )

/** A token that has expired is renewed without a rest: the service would refuse it. */
const isResting = (holder: { readonly tokens: Tokens }) =>
  Effect.map(
    Clock.currentTimeMillis,
    (millis) => millis < Math.min(restsUntil.get(holder) ?? 0, holder.tokens.expiresAt ?? 0)
  )

export type Failed<Id extends OperationId> = Refusals<Id> | ClientError

/** The body of an operation's request. */
export type Payload<Id extends OperationId> =
  Request<Id> extends { readonly payload?: infer Body } ? NonNullable<Body> : never

/** Nothing if an operation knows all query parameters of a request, also those that are spread into it. */
export type Known<Id extends OperationId, Given> = Given extends { readonly query: infer Query }
  ? Request<Id> extends { readonly query?: infer Parameters }
    ? {
        readonly query: { readonly [Name in keyof Query]: Name extends keyof NonNullable<Parameters> ? unknown : never }
      }
    : never
  : unknown

/** Calls an operation. */
export const send = <Id extends OperationId>(id: Id, request: Request<Id>) =>
  withOpenKey(
    `${id} ${JSON.stringify(request)}`,
    Client.use((client) => {
      const operation = client[id] as unknown as (request: Request<Id>) => Effect.Effect<Success<Id>, Failed<Id>>
      return operation(request)
    })
  )

/** The token of who is signed in; nobody who is about to leave asks for anything any more. */
const tokenOf = ({ holder }: Session): Token => (holder === undefined ? Effect.never : currentToken(holder))

/** Runs effects that send every request once and decide themselves what to send again. */
export const runSendingOnce = <A, E>(effect: Effect.Effect<A, E, Client>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, clientOf(tokenOf(registry.get(session)), 1)))

/** A token that is no longer valid ends its session. */
export const endingSession = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const { holder } = registry.get(session)
    return Effect.tapError(effect, (error) =>
      Effect.sync(() => {
        // Of several requests the first ends the session, and none ends another's.
        const isOn = holder !== undefined && registry.get(session).holder === holder
        if (isOn && isRefusal(error) && statuses[error.code] === 401) signOut(sentenceOf(error, holder))
      })
    )
  })

const sentenceOf = (
  { code, message }: { readonly code: string; readonly message: string },
  { tokens }: { readonly tokens: Tokens }
) =>
  code === "TOKEN_EXPIRED" && tokens.id !== undefined
    ? "Your sign-in has expired: sign in again to go on with this page."
    : message

/** Asks what a token is, before anybody is signed in with it. */
export const inspect = (token: Redacted.Redacted<string>) =>
  Effect.provide(send("getMe", {}), clientOf(Effect.succeed(token)))

/** Runs what needs no session. */
export const perform = <A, E>(effect: Effect.Effect<A, E, HttpClient.HttpClient>) =>
  Effect.runPromiseExit(Effect.provide(effect, FetchHttpClient.layer))

/** Signs out here, and at the provider if the reader signed in there. */
export const leave = (): void => {
  const { id } = registry.get(session).holder?.tokens ?? {}
  signOut()
  if (id === undefined) return
  void perform(Effect.tap(farewell(id), (url) => Effect.sync(() => url !== undefined && location.assign(url))))
}

/** The time of day, in milliseconds. */
export const now = (): number => Effect.runSync(Clock.currentTimeMillis)

/** Does something after a while, also if the screen that asked for it is closed. */
export const later = (delay: Duration.Input, act: () => void): void =>
  void Effect.runFork(Effect.delay(Effect.sync(act), delay))
