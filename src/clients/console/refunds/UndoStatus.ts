/**
 * Undoes a change of an order's or subscription's status, and what it did to licenses, unless somebody has changed the status again
 * since. Revocations cannot be undone.
 */
import { Effect, Exit } from "effect"
import { type Refusal, refuse } from "../../../contract/api/Failure.ts"
import { Client } from "../../client/Client.ts"
import { countOf, wordsOf } from "../parts/Format.ts"
import { changedSince } from "../parts/Undo.ts"
import { isFinal } from "../service/Failures.ts"
import { changeBy } from "../service/Hooks.ts"
import { type Changed, type Statused, takeBack } from "./LinkedLicenses.ts"

interface Of<A> {
  readonly noun: string
  readonly reread: () => Promise<Exit.Exit<A, unknown>>
  /** Gives a record the status that it had before. */
  readonly restore: (before: A) => Effect.Effect<unknown, unknown, Client>
}

export const undoOfStatus = <A extends Statused>({ noun, reread, restore }: Of<A>, { attempt, record }: Changed<A>) => {
  const { before, outcome } = attempt
  const changed = [...attempt.changed.values()]
  const isMoved = record.status !== before.status
  if (changed.length > 0 && (outcome === "revoke" || outcome === "keep")) return undefined
  if (!isMoved && changed.length === 0) return undefined
  const giveBack = Effect.fnUntraced(function* (current: A) {
    if (current.status !== before.status) yield* Client.ifUnchanged(current)(restore(before))
    if (outcome === "revoke" || outcome === "keep") return
    // Another failure ends this: the undo can be tried again.
    const isBack = yield* Effect.forEach(changed, (license) =>
      Effect.catchIf(takeBack(license, outcome), isFinal, () => Effect.succeed(false))
    )
    const count = isBack.filter((one) => !one).length
    if (count > 0) return yield* notAll(noun, count)
  })
  const ofRecord = isMoved ? [`The ${noun} is ${wordsOf(record.status)}`] : []
  const ofLicenses = changed.length === 0 ? [] : [told(changed.length, outcome)]
  const said = `${[...ofRecord, ...ofLicenses].join(", and ")}.`
  const run = () =>
    reread().then((exit): Promise<Exit.Exit<unknown, unknown>> => {
      if (Exit.isFailure(exit)) return Promise.resolve(exit)
      // The earlier status is back already if the response to an undo was lost.
      const isOwn = exit.value.status === record.status || exit.value.status === before.status
      return isOwn ? changeBy(giveBack(exit.value)) : Promise.resolve(Exit.fail(changedSince))
    })
  return { said, run }
}

const told = (count: number, outcome: string) =>
  `${countOf(count)} license${count === 1 ? " is" : "s are"} ${outcome === "suspend" ? "suspended" : "reinstated"}`

const notAll = (noun: string, count: number): Refusal<"CONFLICT"> =>
  refuse(
    "CONFLICT",
    `The ${noun} has its earlier status, but ${countOf(count)} of its licenses could not be changed back: perhaps somebody has changed them since. Look at them below.`
  )
