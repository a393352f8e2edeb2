/** The service as its typed client gives it, in effects that the page runs. */
import { Clock, type Context, type Duration, Effect, type Exit, Layer, Option, type Redacted, Semaphore } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { statuses } from "../../../contract/api/ErrorCode.ts"
import { isRefusal } from "../../../contract/api/Failure.ts"
import {
  Client,
  type ClientError,
  type OperationId,
  type Refusals,
  type Request,
  type Success
} from "../../client/Client.ts"
import { service } from "./Address.ts"
import { hasOpenKey, withOpenKey } from "./OpenKeys.ts"
import { farewell, renewed } from "./Provider.ts"
import { currentSession, type Holder, renew, renewBy, type Session, signOut } from "./Session.ts"

type Token = Effect.Effect<Redacted.Redacted<string>>

const clientOf = (token: Token) =>
  Client.layer({ baseUrl: service, attemptsMax: 2 }).pipe(
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

const clients = new WeakMap<Session, Context.Context<Client>>()

/** The client of one session. It never has the token of another one. */
const clientIn = (of: Session): Context.Context<Client> => {
  const existing = clients.get(of)
  if (existing !== undefined) return existing
  const made = Effect.runSync(Effect.scoped(Layer.build(clientOf(tokenOf(of)))))
  clients.set(of, made)
  // Screens that are about to leave the page still look into the registry.
  of.signal.addEventListener("abort", () => later("1 second", () => of.registry.dispose()))
  return made
}

/** An effect that sends with the token of a session. If the token is no longer valid, the session ends. */
export const inSession = <A, E>(of: Session, effect: Effect.Effect<A, E, Client>): Effect.Effect<A, E> =>
  Effect.suspend(() => Effect.provideContext(endingSession(of, effect), clientIn(of)))

/**
 * Runs an effect until it or its session ends. After the session has ended the promise never settles: whatever waits for it belongs
 * to that session, and would go on in the next one.
 */
const runUntilEnd = <A, E>(of: Session, effect: Effect.Effect<A, E>): Promise<Exit.Exit<A, E>> =>
  new Promise((resolve) => {
    if (of.signal.aborted) return
    void Effect.runPromiseExit(effect, { signal: of.signal }).then((exit) => {
      if (!of.signal.aborted) resolve(exit)
    })
  })

export const runInSession = <A, E>(of: Session, effect: Effect.Effect<A, E, Client>) =>
  runUntilEnd(of, inSession(of, effect))

/** Runs an effect in the current session until the signal cancels it; then no result is reported. */
export const cancellable = <A, E>(
  effect: Effect.Effect<A, E, Client>,
  signal: AbortSignal,
  tell: (exit: Exit.Exit<A, E>) => void
): void => {
  void Effect.runPromiseExit(inSession(currentSession(), effect), { signal }).then((exit) => {
    if (!signal.aborted) tell(exit)
  })
}

/** A token that expires before then is renewed first. */
const renewalMillis = 30_000
const renewing = Semaphore.makeUnsafe(1)
/** After a failure the token is used as it is for so long, so that not every request waits for a provider that is down. */
const restMillis = 10_000
const restsUntil = new WeakMap<object, number>()

/** The session's token, renewed if it is about to expire and the provider allows that. */
const currentToken = Effect.fnUntraced(function* (holder: Holder) {
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

const isFresh = ({ tokens: { expiresAt, refresh } }: Holder) =>
  Effect.map(
    Clock.currentTimeMillis,
    (millis) => refresh === undefined || expiresAt === undefined || millis < expiresAt - renewalMillis
  )

/** A token that has expired is renewed without a rest: the service would refuse it. */
const isResting = (holder: Holder) =>
  Effect.map(
    Clock.currentTimeMillis,
    (millis) => millis < Math.min(restsUntil.get(holder) ?? 0, holder.tokens.expiresAt ?? 0)
  )

renewBy((holder, done) => {
  const { access } = holder.tokens
  void Effect.runFork(Effect.map(currentToken(holder), (token) => token !== access && done()))
})

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

const nameOf = <Id extends OperationId>(id: Id, request: Request<Id>) => `${id} ${JSON.stringify(request)}`

/** Whether a form has sent a request and does not know how it ended. Sent again, it is done once. */
export const isUnsure = <Id extends OperationId>(id: Id, request: Request<Id>) => hasOpenKey(nameOf(id, request))

/** Calls an operation. */
export const send = <Id extends OperationId>(id: Id, request: Request<Id>) =>
  withOpenKey(
    nameOf(id, request),
    Client.use((client) => {
      const operation = client[id] as unknown as (request: Request<Id>) => Effect.Effect<Success<Id>, Failed<Id>>
      return operation(request)
    })
  )

/** The token of a session. Requests without a signed-in person wait for it and are not sent. */
const tokenOf = ({ holder, signal }: Session): Token =>
  holder === undefined
    ? Effect.never
    : Effect.flatMap(currentToken(holder), (token) => (signal.aborted ? Effect.never : Effect.succeed(token)))

/** A token that is no longer valid ends its session. */
const endingSession = <A, E, R>(of: Session, effect: Effect.Effect<A, E, R>) =>
  Effect.tapError(effect, (error) =>
    Effect.sync(() => {
      // Of several requests the first ends the session, and none ends another's.
      const isOn = of.holder !== undefined && !of.signal.aborted
      if (isOn && isRefusal(error) && statuses[error.code] === 401) signOut(sentenceOf(error, of.holder))
    })
  )

const sentenceOf = ({ code, message }: { readonly code: string; readonly message: string }, { tokens }: Holder) =>
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
  const { id } = currentSession().holder?.tokens ?? {}
  signOut()
  if (id === undefined) return
  void perform(Effect.tap(farewell(id), (url) => Effect.sync(() => url !== undefined && location.assign(url))))
}

/** The time of day, in milliseconds. */
export const now = (): number => Effect.runSync(Clock.currentTimeMillis)

/** Does something after a while, also if the screen that asked for it is closed. */
export const later = (delay: Duration.Input, act: () => void): void =>
  void Effect.runFork(Effect.delay(Effect.sync(act), delay))
