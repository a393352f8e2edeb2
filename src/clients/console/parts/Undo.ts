/** How an edit is taken back: the fields that it changed get their earlier values, unless somebody has changed them again. */
import { Exit } from "effect"
import { refuse } from "../../../contract/api/Failure.ts"
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

export const changedSince = refuse("CONFLICT", "Somebody has changed it again since: open it and edit it there.")
