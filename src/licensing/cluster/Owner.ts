/** This node as an owner: decides the commands that other nodes hand over, and sends their outcomes. */
import { Cause, Effect, Exit, FiberSet, Option, Result, Schedule } from "effect"
import { payloadOf } from "../../platform/signing/SignedAnswers.ts"
import { type PendingSignature, type Signed, Signer } from "../../platform/signing/Signer.ts"
import { takenOver } from "../../platform/telemetry/Metrics.ts"
import { Traces } from "../../platform/telemetry/Traces.ts"
import { Journal } from "../engine/Journal.ts"
import { LicenseActors } from "../engine/LicenseActors.ts"
import type { PendingCommand } from "../engine/PendingCommand.ts"
import type { Link } from "./NodeLink.ts"
import { type FromOwner, type HandedOver, type Outcome, type ToOwner, wireVersion } from "./Wire.ts"
import { fromWire, refusalToWire, refuseTooLarge } from "./WireCommands.ts"

/** How long a stopping node waits for the commands that it has taken over. */
const drainChecks = 20
const drainInterval = "50 millis"

interface Asker {
  readonly link: Link<FromOwner>
  outcomes: Array<Outcome>
}

interface Taken {
  readonly command: PendingCommand
  /** Tells the other node that the command has no outcome. */
  readonly giveBack: () => void
}

export const makeOwner = Effect.gen(function* () {
  const actors = yield* LicenseActors
  const { retire, epoch, waitsForLock } = yield* Journal
  const signer = yield* Signer
  const context = yield* Effect.context<never>()
  const fork = yield* FiberSet.makeRuntime<never>()
  const counter = takenOver()
  const traces = yield* Traces
  const askers = new Set<Asker>()
  /** Commands in mailboxes and batches. */
  const taken = new Set<Taken>()
  let isLeaving = false

  const currentEpoch = () => ({ epoch: isLeaving ? "" : epoch.current })

  const reply = (asker: Asker, outcome: Outcome): void => {
    if (asker.outcomes.push(outcome) === 1) fork(sendOutcomes(asker))
  }

  const take = (asker: Asker, message: HandedOver): void => {
    const [id, operation, licenseId, , requestId, , nonce, from] = message
    const received = fromWire(message)
    if (received === undefined) {
      reply(asker, [id, "untaken"])
      return
    }
    const span = from === null ? undefined : traces?.startHandedOver(from, operation, requestId)
    const finish = (outcome: Outcome, exit: Exit.Exit<unknown, unknown>): void => {
      if (span !== undefined) traces?.end(span, exit)
      reply(asker, outcome)
    }
    const command: PendingCommand = {
      ...received,
      span,
      begin: (payload) => signer.begin(payloadOf(payload, nonce ?? undefined)),
      resume: (result) => {
        taken.delete(entry)
        if (Exit.isSuccess(result)) {
          const onSignature = result.value as PendingSignature
          onSignature((exit) => finish(signedOutcome(id, exit), exit))
          return
        }
        const refusal = Cause.findErrorOption(result.cause)
        finish(Option.isSome(refusal) ? [id, "refused", refusalToWire(refusal.value)] : [id, "undecided"], result)
      }
    }
    const entry: Taken = { command, giveBack: () => finish([id, "undecided"], Exit.void) }
    taken.add(entry)
    actors.postHere(licenseId, command)
  }

  const receive = (asker: Asker, text: string): void => {
    const parsed = Result.try(() => JSON.parse(text) as ToOwner)
    if (Result.isFailure(parsed)) {
      asker.link.close()
      return
    }
    const { commands, epoch: named } = parsed.success
    // The other node asks for a sign of life.
    if (commands.length === 0) asker.link.send({ ...currentEpoch(), ...(waitsForLock() && { waitsForLock: true }) })
    counter.updateUnsafe(commands.length, context)
    const isTaken = !isLeaving && named === epoch.current
    for (const message of commands) isTaken ? take(asker, message) : reply(asker, [message[0], "untaken"])
  }

  /**
   * Gives all commands back that were taken over in the retired epoch. The other node learns it only after every
   * journal of that epoch is retired: until then a group of it could still commit.
   */
  const giveBack = (retired: string): void => {
    const given = Array.from(taken)
    taken.clear()
    for (const { command } of given) command.givenUp = true
    for (const { link } of askers) link.send(currentEpoch())
    fork(
      Effect.map(retire(retired), () => {
        for (const { giveBack } of given) giveBack()
      })
    )
  }
  epoch.onRenewed.add(giveBack)

  const leave = Effect.gen(function* () {
    isLeaving = true
    for (const { link } of askers) link.send({ epoch: "" })
    yield* Effect.repeat(
      Effect.sync(() => taken.size),
      {
        until: (size) => size === 0,
        times: drainChecks,
        schedule: Schedule.spaced(drainInterval)
      }
    )
  })

  return {
    leave,
    /** What to do with a link that another node has opened. */
    accept: (link: Link<FromOwner>) => {
      const asker: Asker = { link, outcomes: [] }
      askers.add(asker)
      link.send({ version: wireVersion, ...currentEpoch() })
      return { onText: (text: string) => receive(asker, text), onClose: () => void askers.delete(asker) }
    }
  }
})

const signedOutcome = (id: number, exit: Exit.Exit<Signed>): Outcome =>
  Exit.isSuccess(exit)
    ? [id, "signed", exit.value.bytes, exit.value.signature.kid, exit.value.signature.value]
    : [id, "undecided"]

/** Waits one turn of the event loop, so that all outcomes of the same turn share a frame. */
const sendOutcomes = (asker: Asker) =>
  Effect.andThen(
    Effect.yieldNow,
    Effect.sync(() => {
      const { outcomes } = asker
      asker.outcomes = []
      asker.link.send({ outcomes }, (id) =>
        asker.link.send({ outcomes: [[id, "refused", refusalToWire(refuseTooLarge)]] })
      )
    })
  )
