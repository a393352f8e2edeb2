/** The service in React: what is asked for is kept by its request, and asked for again after each change. */
import { Cause, Effect, type Exit } from "effect"
import { AsyncResult, Atom, AtomRegistry } from "effect/reactivity"
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react"
import type { ManagementScope } from "../../auth/Scope.ts"
import { newKey } from "../../client/Attempts.ts"
import { Client, type OperationId, type Request, type Success } from "../../client/Client.ts"
import { endingSession, type Failed, type Known, runtime, send } from "./Service.ts"
import { registry } from "./Session.ts"

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
  const once = runtime.fn(() => endingSession(sent), { reactivityKeys })
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

/** Does something again and again while a screen is shown. */
export const useEvery = (millis: number, act: () => void) =>
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is done is the same each time.
  useEffect(() => Effect.runCallback(Effect.forever(Effect.delay(Effect.sync(act), millis))), [millis])

export const useBusy = () => {
  const [count, setCount] = useState(0)
  const track = <A>(work: Promise<A>): Promise<A> => {
    setCount((before) => before + 1)
    return work.finally(() => setCount((before) => before - 1))
  }
  return [count > 0, track] as const
}

/** Whether the token has a scope: what it may not do is not offered. */
export const useMay = () => {
  const me = useAsk("getMe", {})
  const scopes = AsyncResult.isSuccess(me) ? me.value.scopes : []
  return (scope: ManagementScope) => scopes.includes("admin") || scopes.includes(scope)
}

export const causeOf = <A, E>(result: AsyncResult.AsyncResult<A, E>): Cause.Cause<E> | undefined =>
  AsyncResult.isFailure(result) && !Cause.hasInterruptsOnly(result.cause) ? result.cause : undefined
