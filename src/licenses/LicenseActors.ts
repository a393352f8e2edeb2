/**
 * One actor per license in use: a mailbox, the license's state in memory, and at most one round under way. A round takes all
 * that waits, decides each command in turn on a draft, and commits what changed as one; answers leave only after that. A round
 * that changes nothing asks the database whether the revisions it decided on still hold. Either way an answer rests on the
 * database, never on this process being the only one.
 *
 * Actors cost a map entry: no fiber, no timer. One that was not used for a while is forgotten; its next command loads it again.
 */
import { Clock, Context, Effect, Exit, FiberSet, identity, Layer, Schedule } from "effect"
import { type Code, type Refusal, refuse } from "../api/Failure.ts"
import { type AnswerRow, KeptAnswer } from "../api/KeptAnswer.ts"
import { RequestContext } from "../api/RequestContext.ts"
import { CurrentActor } from "../auth/CurrentActor.ts"
import type { LicenseState } from "./CommittedState.ts"
import { Draft } from "./Draft.ts"
import { Journal } from "./Journal.ts"
import { gatherKnowledge, namesEvent } from "./Knowledge.ts"
import type { Origin, Rule } from "./LicenseCommand.ts"
import { LicenseLookups } from "./LicenseLookups.ts"
import { LicenseStore, type Revisions } from "./LicenseStore.ts"
import { settle } from "./Lifecycle.ts"

/** Commands that may wait for one license; more are answered with 503, never queued without bound. */
const mailboxMax = 1024
/** Commands decided in one round: bounds its commit. */
const roundMax = 256
/** How often a round is decided again after others changed the license meanwhile. */
const attemptsMax = 8
/** Actors in memory; the least recently used beyond are forgotten at the next tidying. */
const actorsMax = 20_000
/** An actor unused for this long is forgotten. */
const idleMillis = 300_000

interface Letter {
  readonly rule: Rule<unknown, unknown, Code>
  readonly command: unknown
  readonly origin: Origin
  readonly resume: (effect: Effect.Effect<unknown, Refusal>) => void
  readonly begin: (reply: unknown) => unknown
  /** Of a request with an Idempotency-Key: words its answer before the commit, so that the two are written together. */
  readonly keep?: (reply: unknown) => Effect.Effect<{ readonly value: unknown; readonly row: AnswerRow }>
  readonly committed?: () => void
}

interface Actor {
  readonly licenseId: string
  readonly mailbox: Array<Letter>
  state: LicenseState | undefined
  running: boolean
  usedAt: number
}

type Answer = Effect.Effect<unknown, Refusal>

export class LicenseActors extends Context.Service<
  LicenseActors,
  {
    /**
     * Has the license's actor decide a command, on behalf of the current actor and request. `begin` starts on the reply what
     * may run while it is being committed. `finish` makes the handler's result of that: after the commit, or just before it
     * where the answer is kept with the change.
     */
    ask<Command, Reply, C extends Code, A = Reply, Begun = Reply>(
      licenseId: string,
      rule: Rule<Command, Reply, C>,
      command: NoInfer<Command>,
      finish?: (begun: Begun) => Effect.Effect<A>,
      begin?: (reply: Reply) => Begun
    ): Effect.Effect<A, Refusal<C> | Refusal<"NOT_FOUND" | "NOT_READY">>
    /** Actors in memory and commands waiting, for metrics. */
    readonly load: Effect.Effect<{ readonly actors: number; readonly waiting: number }>
  }
>()("licensing/licenses/LicenseActors") {
  static readonly layer = Layer.effect(
    LicenseActors,
    Effect.gen(function* () {
      const store = yield* LicenseStore
      const lookups = yield* LicenseLookups
      const journal = yield* Journal
      const fork = yield* FiberSet.makeRuntime<never>()
      const clock = yield* Clock.Clock
      const actors = new Map<string, Actor>()

      /** Decides the letters once: their answers, or why they have to be decided again, and for certain. */
      const attempt = Effect.fnUntraced(function* (actor: Actor, letters: ReadonlyArray<Letter>, certain: boolean) {
        actor.state ??= yield* store.load(actor.licenseId)
        const state = actor.state
        if (state === undefined) return letters.map((): Answer => Effect.fail(noLicense(actor.licenseId)))
        const knowledge = yield* gatherKnowledge(lookups, state, letters, clock.currentTimeMillisUnsafe(), certain)
        const draft = new Draft(state, knowledge)
        const now = clock.currentTimeMillisUnsafe()
        if (now >= state.silentFrom) return "stale"
        const decided = decide(draft, letters, now)
        if (!certain && letters.some((letter, index) => "refusal" in decided[index]! && namesEvent(letter)))
          return "uncertain"
        const answers = yield* keepAnswers(draft, letters, decided)
        if (draft.changed) {
          if ((yield* journal.commit(draft)) === "stale") return "stale"
          // A refusal is kept by nobody here, whatever an attempt before this one had drafted.
          for (const [index, letter] of letters.entries()) if ("reply" in decided[index]!) letter.committed?.()
        } else {
          const [current] = yield* Effect.all(
            [store.revisions(actor.licenseId), draft.seen.size === 0 ? Effect.void : journal.note(draft.seen.values())],
            { concurrency: "unbounded" }
          )
          if (!isCurrent(state, current)) return "stale"
        }
        state.absorb(draft)
        return answers
      })

      const round = Effect.fnUntraced(function* (actor: Actor, letters: ReadonlyArray<Letter>) {
        for (let tried = 0; tried < attemptsMax; tried++) {
          const answers = yield* attempt(actor, letters, tried > 0)
          if (answers === "stale") actor.state = undefined
          else if (answers !== "uncertain") return answers
        }
        return letters.map(
          (): Answer => Effect.fail(refuse("NOT_READY", "The license is being changed from many sides: try again."))
        )
      })

      /** Works until the mailbox is empty. Whatever goes wrong in a round is the answer to all of it, and the state is dropped. */
      const work = Effect.fnUntraced(function* (actor: Actor) {
        // One turn of the scheduler, so that all who ask in the same turn share the round.
        yield* Effect.yieldNow
        while (actor.mailbox.length > 0) {
          const letters = actor.mailbox.splice(0, roundMax)
          const exit = yield* Effect.exit(round(actor, letters))
          if (Exit.isFailure(exit)) actor.state = undefined
          const answer = Effect.sync(() => {
            for (const [index, letter] of letters.entries()) {
              letter.resume(Exit.isSuccess(exit) ? exit.value[index]! : Effect.failCause(exit.cause))
            }
          })
          // The next round is handed in before this one's answers are worked on.
          if (actor.mailbox.length > 0) fork(Effect.andThen(Effect.yieldNow, answer))
          else yield* answer
        }
        actor.usedAt = clock.currentTimeMillisUnsafe()
        actor.running = false
      })

      const actorOf = (licenseId: string): Actor => {
        const known = actors.get(licenseId)
        if (known !== undefined) return known
        const actor: Actor = { licenseId, mailbox: [], state: undefined, running: false, usedAt: 0 }
        actors.set(licenseId, actor)
        return actor
      }

      const post = (licenseId: string, letter: Letter): void => {
        const actor = actorOf(licenseId)
        if (actor.mailbox.length >= mailboxMax) {
          letter.resume(Effect.fail(refuse("NOT_READY", "Too many requests wait for this license: try again.")))
          return
        }
        actor.mailbox.push(letter)
        if (actor.running) return
        actor.running = true
        fork(work(actor))
      }

      const tidy = Effect.sync(() => {
        const now = clock.currentTimeMillisUnsafe()
        const idle = Array.from(actors.values()).filter((actor) => !actor.running)
        const surplus = actors.size - actorsMax
        const oldest = surplus > 0 ? idle.toSorted((a, b) => a.usedAt - b.usedAt).slice(0, surplus) : []
        for (const actor of [...oldest, ...idle.filter(({ usedAt }) => now - usedAt > idleMillis)])
          actors.delete(actor.licenseId)
      })
      yield* Effect.forkScoped(Effect.repeat(tidy, Schedule.spaced("10 seconds")))

      return LicenseActors.of({
        ask: (licenseId, rule, command, finish = Effect.succeed as never, begin = identity as never) =>
          Effect.withFiber((fiber) => {
            const { requestId, clientAddress } = fiber.getRef(RequestContext)
            const origin: Origin = { ...fiber.getRef(CurrentActor), request_id: requestId, ip_address: clientAddress }
            const keeper = fiber.getRef(KeptAnswer)
            const letter = { rule: rule as never, command, origin, begin: begin as never }
            if (keeper === undefined) {
              const reply = Effect.callback((resume) => post(licenseId, { ...letter, resume: resume as never }))
              return Effect.flatMap(reply as never, finish)
            }
            const keep = (reply: unknown) =>
              Effect.flatMap(finish(begin(reply as never)), (value) =>
                Effect.map(keeper.rowOf(value), (row) => ({ value, row }))
              ).pipe(Effect.provideContext(fiber.context))
            return Effect.callback((resume) =>
              post(licenseId, { ...letter, resume: resume as never, keep, committed: keeper.committed })
            )
          }),
        load: Effect.sync(() => ({
          actors: actors.size,
          waiting: Array.from(actors.values()).reduce((sum, { mailbox }) => sum + mailbox.length, 0)
        }))
      })
    })
  )
}

const noLicense = (licenseId: string) => refuse("NOT_FOUND", `No license has the id ${licenseId}.`, "id")

const isCurrent = ({ license, policy, catalogRevision }: LicenseState, current: Revisions | undefined): boolean =>
  current !== undefined &&
  current.license === license.revision &&
  current.policy === policy.revision &&
  current.catalog === catalogRevision

/** A letter's outcome: a refusal, or what the rule replies. */
type Decided = { readonly refusal: Refusal } | { readonly reply: unknown }

/** Decides every letter in turn, on what time and the letters before it have left. */
const decide = (draft: Draft, letters: ReadonlyArray<Letter>, now: number): ReadonlyArray<Decided> => {
  return letters.map(({ rule, command, origin }) => {
    // Before each letter: the one before may have moved an expiry behind the clock.
    draft.settle(settle(draft, now), now)
    const outcome = rule.decide(draft, command, now)
    draft.apply(outcome.accepted ? outcome.changes : { events: outcome.events ?? [] }, origin, now)
    return outcome.accepted
      ? { reply: outcome.reply(draft) }
      : { refusal: refuse(outcome.code, outcome.message, outcome.detail) }
  })
}

/** The answers, and into the draft the rows of those that are kept with the change. */
const keepAnswers = Effect.fnUntraced(function* (
  draft: Draft,
  letters: ReadonlyArray<Letter>,
  decided: ReadonlyArray<Decided>
) {
  const answers: Array<Answer> = []
  for (const [index, outcome] of decided.entries()) {
    const keep = letters[index]?.keep
    if ("refusal" in outcome) answers.push(Effect.fail(outcome.refusal))
    else if (keep === undefined) answers.push(Effect.succeed(letters[index]!.begin(outcome.reply)))
    else {
      const { value, row } = yield* keep(outcome.reply)
      draft.answers.push(row)
      answers.push(Effect.succeed(value))
    }
  }
  return answers
})
