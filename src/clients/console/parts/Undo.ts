/** Undoes a change by restoring the earlier values, unless somebody has changed them since. */
import { Effect, Exit } from "effect"
import { refuse } from "../../../contract/api/Failure.ts"
import type { Client, OperationId, Request } from "../../client/Client.ts"
import { changeBy } from "../service/Hooks.ts"
import { isUnsure, send } from "../service/Service.ts"
import { type Edited, isSame } from "./Form.tsx"

type Values = Readonly<Record<string, unknown>>
type Sending<A> = (values: never, read?: object) => Promise<Exit.Exit<A, unknown>>

/** Undefined if the edit changed nothing, or if its response does not show what it changed. */
export const undoOfEdit = <A>({ record, reread }: Edited, sent: object, after: A, send: Sending<A>) => {
  const names = Object.keys(sent).filter((name) => !isSame((record as Values)[name], (sent as Values)[name]))
  const result = (typeof after === "object" ? after : {}) as Values
  const isShown = names.every((name) => result[name] !== undefined || (sent as Values)[name] === null)
  if (names.length === 0 || !isShown) return undefined
  const earlier = Object.fromEntries(names.map((name) => [name, (record as Values)[name] ?? null]))
  return () =>
    reread().then((exit): Promise<Exit.Exit<unknown, unknown>> => {
      if (Exit.isFailure(exit)) return Promise.resolve(exit)
      const isUnchanged = names.every((name) => isSame((exit.value as Values)[name], result[name]))
      return isUnchanged ? send(earlier as never, exit.value) : Promise.resolve(Exit.fail(changedSince))
    })
}

/**
 * A change of a state, such as a suspension. It is refused if somebody else has made it meanwhile, because an undo would revert their
 * change. If the dialog has sent it and does not know how it ended, it is sent again.
 */
export const unlessDone = <A, Id extends OperationId>(
  { isDone, noun, read }: Stated<A>,
  operation: Id,
  request: Request<Id>
) =>
  changeBy(
    Effect.gen(function* () {
      if (isDone(yield* read) && !(yield* isUnsure(operation, request)))
        return yield* refuse("CONFLICT", `The ${noun} is in this state already: reload the page to see who changed it.`)
      return yield* send(operation, request)
    })
  )

interface Stated<A> {
  readonly noun: string
  readonly read: Effect.Effect<A, unknown, Client>
  /** Whether the record is in the wanted state. */
  readonly isDone: (current: A) => boolean
}

/** Undoes a change of a state, unless somebody has changed the record since. */
export const undoOfState =
  <A>({ back, isBack, isOwn, read }: Back<A>) =>
  () =>
    changeBy(
      Effect.gen(function* () {
        const current = yield* read
        // An earlier attempt did it, and its response was lost.
        if (isBack(current)) return
        if (!isOwn(current)) return yield* changedSince
        yield* back(current)
      })
    )

interface Back<A> {
  readonly read: Effect.Effect<A, unknown, Client>
  /** Whether the earlier state is back. */
  readonly isBack: (current: A) => boolean
  /** Whether the record is as the change left it: another one to the same state is another person's. */
  readonly isOwn: (current: A) => boolean
  readonly back: (current: A) => Effect.Effect<unknown, unknown, Client>
}

export const changedSince = refuse("CONFLICT", "Somebody has changed it again since: open it and edit it there.")
