/** The service in React: what is asked for is kept by its request, and asked for again after each change. */
import { Cause, Effect, type Exit, Option } from "effect"
import { AsyncResult, Atom } from "effect/reactivity"
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react"
import type { ManagementScope } from "../../../access/Scope.ts"
import { newKey } from "../../client/Attempts.ts"
import { Client, type OperationId, type Request, type Success } from "../../client/Client.ts"
import { keysOfForm, OpenKeys } from "./OpenKeys.ts"
import { type Failed, inSession, type Known, runInSession, send } from "./Service.ts"
import { currentSession, onSession, type Session } from "./Session.ts"

/** The current session. A component of an earlier one is about to leave the page. */
export const useSession = (): Session => useSyncExternalStore(onSession, currentSession)

export const useAtom = <A>(atom: Atom.Atom<A>): A => {
  const { registry } = useSession()
  const subscribe = useCallback((notify: () => void) => registry.subscribe(atom, notify), [registry, atom])
  return useSyncExternalStore(subscribe, () => registry.get(atom))
}

export type Asked<Id extends OperationId> = AsyncResult.AsyncResult<Success<Id>, Failed<Id>>

/** Counts changes. Any may change any response, and a screen asks for few: they are all asked for again. */
const changes = Atom.keepAlive(Atom.make(0))

/** Requests whose responses are kept for a while after their screen is left. */
const requestsMax = 100

const atomOf = <Id extends OperationId>(of: Session, id: Id, request: Request<Id>): Atom.Atom<Asked<Id>> => {
  const { requests } = of
  const key = `${id} ${JSON.stringify(request)}`
  const existing = requests.get(key)
  if (existing !== undefined) return existing as Atom.Atom<Asked<Id>>
  const asking = inSession(of, send(id, request))
  const made = Atom.make((get) => {
    get(changes)
    return asking
  })
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
  const of = useSession()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key contains the whole request.
  const atom = useMemo(() => atomOf<Id>(of, id, request), [of, id, key])
  useEffect(() => {
    const { registry } = of
    if (!AsyncResult.isInitial(registry.get(atom)) && !registry.get(atom).waiting) registry.refresh(atom)
  }, [of, atom])
  return useAtom(atom)
}

/** Asks for a part of a record. Until it is there the part before is shown, so that its controls stay and keep the focus. */
export const useAskPart: typeof useAsk = (id, request) => {
  const result = useAsk(id, request)
  const last = useRef(result)
  if (!AsyncResult.isInitial(result)) last.current = result
  return AsyncResult.isInitial(result) ? AsyncResult.waiting(last.current) : result
}

/** Asks for several at once, as many as there are. */
export const useAskEach = <Id extends OperationId>(
  id: Id,
  given: ReadonlyArray<Request<Id>>
): ReadonlyArray<Asked<Id>> => {
  const key = JSON.stringify(given)
  const of = useSession()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key contains all requests.
  const atom = useMemo(
    () => Atom.make((get) => given.map((request) => get(atomOf<Id>(of, id, request)))),
    [of, id, key]
  )
  return useAtom(atom)
}

/** Asks the service once more for what a screen shows. */
export const askAgain = <Id extends OperationId>(id: Id, request: Request<Id>): void => {
  const of = currentSession()
  const { registry } = of
  const atom = atomOf(of, id, request)
  if (!registry.get(atom).waiting) registry.refresh(atom)
}

const persons = new WeakMap<Session, string>()

/** Who is signed in, once that is known. */
export const personIn = (of: Session): string | undefined => {
  const me = persons.has(of) ? undefined : lastOf(of.registry.get(atomOf(of, "getMe", {})))
  if (me !== undefined) persons.set(of, `${me.kind} ${me.id}`)
  return persons.get(of)
}

/** Runs an effect once, outside of any screen. */
export const perform = <A, E>(effect: Effect.Effect<A, E, Client>) => runInSession(currentSession(), effect)

/** Runs an operation once, outside of any screen. */
export const run = <Id extends OperationId>(id: Id, request: Request<Id>) => runOnce(send(id, request))

/**
 * An operation that changes something. How it ended is a value, so that no caller forgets that it can fail. With `read`, the change
 * is made only if the record is as it was read.
 */
export const change = <Id extends OperationId>(id: Id, request: Request<Id>, read?: object) =>
  changeBy(read === undefined ? send(id, request) : Client.ifUnchanged(read)(send(id, request)))

/** Several operations that change something together. */
export const changeBy = <A, E>(effect: Effect.Effect<A, E, Client>) => {
  const { registry } = currentSession()
  return runOnce(Effect.tap(effect, () => Effect.sync(() => registry.update(changes, (count) => count + 1))))
}

/** A change is not an atom, because the library runs an atom again when its dependencies change. */
const runOnce = <A, E>(sent: Effect.Effect<A, E, Client>): Promise<Exit.Exit<A, E>> =>
  runInSession(currentSession(), Effect.provideService(sent, OpenKeys, keysOfForm()))

/** A change that is made once, also if it is sent again with the same key. */
export const changeOnce = <Id extends OperationId>(id: Id, request: Request<Id>, idempotencyKey: string) =>
  changeBy(Client.withIdempotencyKey(idempotencyKey)(send(id, request)))

/** Asks for everything on the screen again. */
export const refresh = () => changeBy(Effect.void)

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
