/** The service in React: what is asked for is kept by its request, and asked for again after each change. */
import { Cause, Effect, type Exit, Option } from "effect"
import { AsyncResult, Atom, AtomRegistry } from "effect/reactivity"
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react"
import type { ManagementScope } from "../../auth/Scope.ts"
import { newKey } from "../../client/Attempts.ts"
import { Client, type OperationId, type Request, type Success } from "../../client/Client.ts"
import { keysOfForm, OpenKeys } from "./OpenKeys.ts"
import { endingSession, type Failed, type Known, runtime, send } from "./Service.ts"
import { registry, session } from "./Session.ts"

export const useAtom = <A>(atom: Atom.Atom<A>): A => {
  const subscribe = useCallback((notify: () => void) => registry.subscribe(atom, notify), [atom])
  return useSyncExternalStore(subscribe, () => registry.get(atom))
}

export type Asked<Id extends OperationId> = AsyncResult.AsyncResult<Success<Id>, Failed<Id>>

/** Any change may change any response, and a screen asks for few: they are all asked for again. */
const everything = "service"

/** Requests whose responses are kept for a while after their screen is left. */
const requestsMax = 100
const requests = new Map<string, Atom.Atom<unknown>>()

// Who signs in next sees nothing of what the one before was shown.
registry.subscribe(session, () => requests.clear())

const atomOf = <Id extends OperationId>(id: Id, request: Request<Id>): Atom.Atom<Asked<Id>> => {
  const key = `${id} ${JSON.stringify(request)}`
  const existing = requests.get(key)
  if (existing !== undefined) return existing as Atom.Atom<Asked<Id>>
  const made = Atom.withReactivity([everything])(runtime.atom(endingSession(send(id, request))))
  if (requests.size >= requestsMax) requests.delete(requests.keys().next().value!)
  requests.set(key, made)
  return made
}

/** Asks the service; a response from earlier is shown until the new one is there. */
export const useAsk = <Id extends OperationId, Given extends Request<Id>>(
  id: Id,
  request: Given & Known<Id, Given>
): Asked<Id> => {
  const key = JSON.stringify(request)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key contains the whole request.
  const atom = useMemo(() => atomOf<Id>(id, request), [id, key])
  useEffect(() => {
    if (!AsyncResult.isInitial(registry.get(atom)) && !registry.get(atom).waiting) registry.refresh(atom)
  }, [atom])
  return useAtom(atom)
}

/** Asks the service once more for what a screen shows. */
export const askAgain = <Id extends OperationId>(id: Id, request: Request<Id>): void => {
  const atom = atomOf(id, request)
  if (!registry.get(atom).waiting) registry.refresh(atom)
}

/** Runs an effect once, outside of any screen. */
export const perform = <A, E>(effect: Effect.Effect<A, E, Client>) => runOnce(effect, [])

/** Runs an operation once, outside of any screen. */
export const run = <Id extends OperationId>(id: Id, request: Request<Id>) => runOnce(send(id, request), [])

/**
 * An operation that changes something. How it ended is a value, so that no caller forgets that it can fail. With `read`, the change
 * is made only if the record is as it was read.
 */
export const change = <Id extends OperationId>(id: Id, request: Request<Id>, read?: object) =>
  runOnce(read === undefined ? send(id, request) : Client.ifUnchanged(read)(send(id, request)), [everything])

/** Several operations that change something together. */
export const changeBy = <A, E>(effect: Effect.Effect<A, E, Client>) => runOnce(effect, [everything])

const runOnce = <A, E>(
  sent: Effect.Effect<A, E, Client>,
  reactivityKeys: ReadonlyArray<string>
): Promise<Exit.Exit<A, E>> => {
  // Each run has an atom of its own: of two runs in one atom, the second interrupts the first.
  const keyed = Effect.provideService(sent, OpenKeys, keysOfForm())
  const once = runtime.fn(() => endingSession(keyed), { reactivityKeys })
  const unmount = registry.mount(once)
  registry.set(once, undefined)
  return Effect.runPromiseExit(AtomRegistry.getResult(registry, once, { suspendOnWaiting: true })).finally(unmount)
}

/** A change that is made once, also if it is sent again with the same key. */
export const changeOnce = <Id extends OperationId>(id: Id, request: Request<Id>, idempotencyKey: string) =>
  runOnce(Client.withIdempotencyKey(idempotencyKey)(send(id, request)), [everything])

/** Asks for everything on the screen again. */
export const refresh = () => runOnce(Effect.void, [everything])

/** An Idempotency-Key. */
export const freshKey = (): string => Effect.runSync(newKey)

export const useBusy = () => {
  const [count, setCount] = useState(0)
  const track = <A>(work: Promise<A>): Promise<A> => {
    setCount((before) => before + 1)
    return work.finally(() => setCount((before) => before - 1))
  }
  return [count > 0, track] as const
}

/** What was asked for as it was read last, also if it could not be read again since. */
export const lastOf = <A, E>(result: AsyncResult.AsyncResult<A, E>): A | undefined =>
  Option.getOrUndefined(AsyncResult.value(result))

/** What is about all products, and closed to a token for some of them. */
const aboutAll: ReadonlySet<ManagementScope> = new Set(["webhook:write", "ops:read"])

/** Whether the token has a scope: what it may not do is not offered. */
export const useMay = () => {
  const { product_ids, scopes = [] } = lastOf(useAsk("getMe", {})) ?? {}
  return (scope: ManagementScope) =>
    (scopes.includes("admin") || scopes.includes(scope)) && (product_ids === undefined || !aboutAll.has(scope))
}

/** Whether the token has a scope for all products: a token for some creates no product and no customer. */
export const useMayForAll = () => {
  const may = useMay()
  const me = lastOf(useAsk("getMe", {}))
  return (scope: ManagementScope) => may(scope) && me?.product_ids === undefined
}

export const causeOf = <A, E>(result: AsyncResult.AsyncResult<A, E>): Cause.Cause<E> | undefined =>
  AsyncResult.isFailure(result) && !Cause.hasInterruptsOnly(result.cause) ? result.cause : undefined
