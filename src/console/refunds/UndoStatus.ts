/**
 * How a change of an order's or subscription's status is taken back, together with what it did to licenses: unless somebody has
 * changed the status again since. Revoked licenses cannot be given back.
 */
import { Effect, Exit } from "effect"
import { type Refusal, refuse } from "../../api/Failure.ts"
import { Client } from "../../client/Client.ts"
import { countOf, wordsOf } from "../parts/Format.ts"
import { changedSince } from "../parts/Undo.ts"
import { changeBy } from "../service/Hooks.ts"
import { send } from "../service/Service.ts"
import type { Changed } from "./LinkedLicenses.ts"

interface Record {
  readonly status: string
}

interface Of<A> {
  readonly noun: string
  readonly before: A
  readonly reread: () => Promise<Exit.Exit<A, unknown>>
  /** Gives a record the status that it had before. */
  readonly restore: (before: A) => Effect.Effect<unknown, unknown, Client>
}

const inverse = { suspend: "reinstateLicense", reinstate: "suspendLicense" } as const

export const undoOfStatus = <A extends Record>(of: Of<A>, { changed, outcome, record = of.before }: Changed<A>) => {
  const { before, noun, reread, restore } = of
  if (changed.length > 0 && (outcome === "revoke" || outcome === "keep")) return undefined
  if (record.status === before.status && changed.length === 0) return undefined
  const giveBack = Effect.fnUntraced(function* (current: A) {
    if (current.status !== before.status) yield* Client.ifUnchanged(current)(restore(before))
    if (outcome === "revoke" || outcome === "keep") return
    const operation = inverse[outcome]
    const failed = yield* Effect.forEach(changed, ({ id }) =>
      send(operation, { params: { id } }).pipe(
        Effect.as(0),
        Effect.catch(() => Effect.succeed(1))
      )
    )
    const count = failed.reduce<number>((sum, one) => sum + one, 0)
    if (count > 0) return yield* notAll(noun, count)
  })
  const said = `The ${noun} is ${wordsOf(record.status)}${toldOf(changed.length, outcome)}.`
  const run = () =>
    reread().then((exit): Promise<Exit.Exit<unknown, unknown>> => {
      if (Exit.isFailure(exit)) return Promise.resolve(exit)
      // The earlier status is back already if the response to an undo was lost.
      const isOwn = exit.value.status === record.status || exit.value.status === before.status
      return isOwn ? changeBy(giveBack(exit.value)) : Promise.resolve(Exit.fail(changedSince))
    })
  return { said, run }
}

const toldOf = (count: number, outcome: string) =>
  count === 0
    ? ""
    : `, and ${countOf(count)} license${count === 1 ? " is" : "s are"} ${outcome === "suspend" ? "suspended" : "reinstated"}`

const notAll = (noun: string, count: number): Refusal<"CONFLICT"> =>
  refuse(
    "CONFLICT",
    `Only the ${noun} has its earlier status again: ${countOf(count)} of its licenses could not be changed back. Look at them below.`
  )
