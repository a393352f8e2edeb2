/**
 * Another node as the owner of licenses: hands commands over to it and passes their outcomes on. What must stay true: a
 * command that was sent is decided here only after the epoch that it was sent for is retired in the database, or the
 * owner gave it back. So the owner cannot execute it afterwards, however late it is.
 */
import { Clock, Effect, Exit } from "effect"
import type { NodeAddress } from "../../platform/config/Setting.ts"
import { monotonicMillis } from "../../platform/postgres/driver/Deadline.ts"
import type { MasterKey } from "../../platform/signing/MasterKey.ts"
import { algorithm } from "../../platform/signing/SigningKey.ts"
import { handedOver } from "../../platform/telemetry/Metrics.ts"
import type { Traces } from "../../platform/telemetry/Traces.ts"
import type { Journal } from "../engine/Journal.ts"
import type { LicenseActors } from "../engine/LicenseActors.ts"
import { type PendingCommand, unknownOutcome } from "../engine/PendingCommand.ts"
import { Liveness } from "./Liveness.ts"
import { makeOwnerConnection } from "./OwnerConnection.ts"
import { type WaitingCommand, WaitingCommands } from "./WaitingCommands.ts"
import type { Outcome } from "./Wire.ts"
import { refusalFromWire, refuseTooLarge, repeated } from "./WireCommands.ts"

/** Commands that wait for one owner. Further ones are decided here. */
const waitingMax = 4_096
/** Bytes that the owner has not read yet; beyond it commands are decided here. */
const backlogMax = 4 * 1024 * 1024
/** The pause between two checks, while commands wait. */
const checkMillis = 40

export interface Peer {
  /** False: this node has to decide the command itself. */
  handOver(licenseId: string, command: PendingCommand): boolean
  isReady(): boolean
}

export interface PeerNeeds {
  readonly actors: LicenseActors["Service"]
  readonly journal: Journal["Service"]
  readonly masterKey: MasterKey["Service"]
  readonly timeoutMillis: number
  readonly traces: Traces | undefined
  /** Is called when `isReady` has changed. */
  readonly onReadiness: () => void
  /** Runs fibers that outlive the peer: commands may still wait for it. */
  readonly fork: (effect: Effect.Effect<void>) => unknown
}

const counters = {
  answered: handedOver({ outcome: "answered" }),
  returned: handedOver({ outcome: "returned" }),
  late: handedOver({ outcome: "late" }),
  lost: handedOver({ outcome: "lost" })
}

/** Connects to the node and stays connected until the scope ends. */
export const makePeer = Effect.fnUntraced(function* (address: NodeAddress, needs: PeerNeeds) {
  const { actors, fork, journal, masterKey, onReadiness, timeoutMillis, traces } = needs
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const nowMillis = () => monotonicMillis(clock)
  const waiting = new WaitingCommands()
  /** The owner's epoch; undefined while nothing may be handed over. */
  let epoch: string | undefined
  let isRetiring = false
  let isChecking = false
  const liveness = new Liveness()

  const setEpoch = (named: string | undefined): void => {
    const wasReady = epoch !== undefined
    epoch = named
    if (wasReady !== (epoch !== undefined)) onReadiness()
  }

  const decideAgain = ({ command, licenseId }: WaitingCommand) => actors.postHere(licenseId, repeated(command))

  const settle = (outcome: Outcome): void => {
    const [id, kind] = outcome
    const sent = waiting.take(id)
    if (sent === undefined) return
    if (kind === "untaken" || kind === "undecided") {
      counters.returned.updateUnsafe(1, context)
      if (kind === "untaken") actors.postHere(sent.licenseId, sent.command)
      else decideAgain(sent)
      return
    }
    counters.answered.updateUnsafe(1, context)
    if (kind === "signed" || outcome[2].code !== "NOT_READY") liveness.reachedDatabase()
    answer(sent.command, outcome)
  }

  /** Takes back what was not sent yet: this node decides it as if it had never been handed over. */
  const takeBackUnsent = () => {
    for (const { command, licenseId } of waiting.takeUnsent()) actors.postHere(licenseId, command)
  }

  /** Ends the epochs of all commands that wait, and then decides those whose outcome has not arrived. */
  const giveUp = (counter: typeof counters.late): void => {
    setEpoch(undefined)
    takeBackUnsent()
    if (isRetiring) return
    isRetiring = true
    connection.backOff()
    fork(
      Effect.map(Effect.forEach(waiting.epochs(), journal.retire, { discard: true }), () => {
        isRetiring = false
        const left = waiting.takeAll()
        counter.updateUnsafe(left.length, context)
        connection.close()
        for (const sent of left) decideAgain(sent)
      })
    )
  }

  /** While the database cannot be reached no epoch can be retired: then commands are answered at their deadline. */
  const answerExpired = (now: number): void => {
    for (const { command } of waiting.takeSentBefore(now - timeoutMillis)) command.resume(Exit.fail(unknownOutcome))
  }

  const check = Effect.gen(function* () {
    liveness.begin()
    while (waiting.size > 0) {
      yield* Effect.sleep(checkMillis)
      if (waiting.size === 0) break
      if (liveness.check() && !isRetiring) giveUp(counters.late)
      // One that leaves is asked, too: it decides what it has before it ends.
      if (liveness.isSilent) connection.send({ epoch: epoch ?? "", commands: [] })
      answerExpired(nowMillis())
    }
    isChecking = false
  })

  /** Waits one turn of the event loop, so that all commands of the same turn share a frame. */
  const sendUnsent = Effect.andThen(
    Effect.yieldNow,
    Effect.sync(() => {
      if (waiting.unsentCount === 0) return
      if (!connection.isOpen() || epoch === undefined) {
        takeBackUnsent()
        return
      }
      connection.send({ epoch, commands: waiting.send(epoch, nowMillis()) }, (id) =>
        waiting.take(id)?.command.resume(Exit.fail(refuseTooLarge))
      )
      if (isChecking) return
      isChecking = true
      fork(check)
    })
  )

  const handOver: Peer["handOver"] = (licenseId, command) => {
    if (epoch === undefined || waiting.size >= waitingMax || connection.backlog() > backlogMax) return false
    command.deadline = nowMillis() + timeoutMillis
    const { span } = command
    waiting.add(licenseId, command, span === undefined ? null : (traces?.handOver(span) ?? null))
    if (waiting.unsentCount === 1) fork(sendUnsent)
    return true
  }

  const connection = yield* makeOwnerConnection(address, masterKey, fork, {
    onHeard: (waitsForLock) => {
      liveness.heard()
      if (waitsForLock) liveness.reachedDatabase()
    },
    onEpoch: (named) => {
      if (!isRetiring) setEpoch(named === "" ? undefined : named)
    },
    onOutcome: settle,
    onLost: () => {
      if (waiting.size > 0) giveUp(counters.lost)
      setEpoch(undefined)
    }
  })
  return { handOver, isReady: () => epoch !== undefined } satisfies Peer
})

type Decided = Exclude<Outcome, readonly [number, "untaken" | "undecided"]>

/** Passes on what the owner has decided. */
const answer = (command: PendingCommand, outcome: Decided): void => {
  if (outcome[1] === "refused") {
    command.resume(Exit.fail(refusalFromWire(outcome[2])))
    return
  }
  const [, , bytes, kid, value] = outcome
  const signed = Exit.succeed({ bytes, signature: { alg: algorithm, kid, value } })
  command.resume(Exit.succeed((onSignature: (exit: typeof signed) => void) => onSignature(signed)))
}
