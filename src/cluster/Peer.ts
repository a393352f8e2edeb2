/**
 * Another node as the owner of licenses: hands commands over to it and passes their outcomes on. What must stay true: a command that
 * was sent is decided here only after the term that it was sent for is retired in the database, or the owner gave it back. So the
 * owner cannot execute it afterwards, however late it is.
 */
import { Clock, Effect, Exit, Result } from "effect"
import { refuse } from "../api/Failure.ts"
import type { NodeAddress } from "../config/Setting.ts"
import type { Journal } from "../licenses/engine/Journal.ts"
import type { LicenseActors } from "../licenses/engine/LicenseActors.ts"
import type { PendingCommand } from "../licenses/engine/PendingCommand.ts"
import type { MasterKey } from "../signing/MasterKey.ts"
import { algorithm } from "../signing/SigningKey.ts"
import { handedOver } from "../telemetry/Metrics.ts"
import type { Traces } from "../telemetry/Traces.ts"
import { refusalFromWire, repeated, toWire } from "./Commands.ts"
import { dial, type Link } from "./Link.ts"
import { type FromOwner, type HandedOver, type Outcome, type ToOwner, wireVersion } from "./Wire.ts"

/** Commands that wait for one owner. Further ones are decided here. */
const waitingMax = 4_096
/** Bytes that the owner has not read yet; beyond it commands are decided here. */
const backlogMax = 4 * 1024 * 1024
const checkMillis = 40
/**
 * Checks in a row, while commands wait, that hear nothing of the owner. Each of them asks it for a sign of life, so a frozen one or
 * a broken network is found within 250 ms. An owner that is heard of anyway is not asked. Checks are counted instead of time, because
 * this node itself may have little time: it reads between them.
 */
const silentChecksMax = 5
/**
 * Checks in a row that hear of no decision: the owner runs, but cannot reach the database, or has too much to do. If it decides
 * others, then a command that waits is held up by its license, and the owner answers it.
 */
const undecidedChecksMax = 20
/** The pause before a node is dialed again: doubled if it lets commands wait again soon, so that an overloaded owner is left alone. */
const redialMillisMin = 500
const redialMillisMax = 8_000
const soonMillis = 10_000

export interface Peer {
  /** False: this node has to decide the command itself. */
  handOver(licenseId: string, command: PendingCommand): boolean
  isReady(): boolean
}

interface Sent {
  readonly licenseId: string
  readonly command: PendingCommand
  /** Undefined until it is sent. */
  term: string | undefined
  sentMillis: number
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
  const nowMillis = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const waiting = new Map<number, Sent>()
  let nextId = 0
  let outbox: Array<HandedOver> = []
  let link: Link<ToOwner> | undefined
  /** The owner's term; undefined while nothing may be handed over. */
  let term: string | undefined
  let isRetiring = false
  let isChecking = false
  let isClosed = false
  let redialMillis = redialMillisMin
  let readyMillis = 0
  let silentChecks = 0
  /** Whether the owner was heard of since the last check. */
  let isHeard = false
  let undecidedChecks = 0

  const setTerm = (named: string | undefined): void => {
    const wasReady = term !== undefined
    term = named
    if (wasReady !== (term !== undefined)) onReadiness()
  }

  const decideAgain = ({ command, licenseId }: Sent) => actors.postHere(licenseId, repeated(command))

  const settle = (outcome: Outcome): void => {
    const [id, kind] = outcome
    const sent = waiting.get(id)
    // Given up meanwhile.
    if (sent === undefined) return
    waiting.delete(id)
    counters[kind === "undecided" ? "returned" : "answered"].updateUnsafe(1, context)
    if (kind === "signed" || (kind === "refused" && outcome[2].code !== "NOT_READY")) undecidedChecks = 0
    if (kind === "undecided") decideAgain(sent)
    else if (kind === "refused") sent.command.resume(Exit.fail(refusalFromWire(outcome[2])))
    else {
      const [, , bytes, kid, value] = outcome
      const signed = Exit.succeed({ bytes, signature: { alg: algorithm, kid, value } })
      sent.command.resume(Exit.succeed((onSignature: (exit: typeof signed) => void) => onSignature(signed)))
    }
  }

  /** Takes back what was not sent yet: this node decides it as if it had never been handed over. */
  const takeBackUnsent = () => {
    for (const [id] of outbox) {
      const { command, licenseId } = waiting.get(id)!
      waiting.delete(id)
      actors.postHere(licenseId, command)
    }
    outbox = []
  }

  /** Ends the terms of all commands that wait, and then decides those whose outcome has not arrived. */
  const giveUp = (counter: typeof counters.late): void => {
    setTerm(undefined)
    takeBackUnsent()
    if (isRetiring) return
    isRetiring = true
    redialMillis =
      nowMillis() - readyMillis > soonMillis ? redialMillisMin : Math.min(2 * redialMillis, redialMillisMax)
    const retireAll = Effect.forEach(new Set(Array.from(waiting.values(), (sent) => sent.term!)), journal.retire, {
      discard: true
    })
    fork(
      Effect.map(retireAll, () => {
        isRetiring = false
        const left = Array.from(waiting.values())
        waiting.clear()
        counter.updateUnsafe(left.length, context)
        link?.close()
        for (const sent of left) decideAgain(sent)
      })
    )
  }

  /** While the database cannot be reached no term can be retired: then commands are answered at their deadline. */
  const answerExpired = (now: number): void => {
    for (const [id, { command, sentMillis, term }] of waiting) {
      if (term === undefined || now - sentMillis < timeoutMillis) return
      waiting.delete(id)
      command.resume(Exit.fail(unknownOutcome))
    }
  }

  const check = Effect.gen(function* () {
    silentChecks = 0
    isHeard = false
    undecidedChecks = 0
    while (waiting.size > 0) {
      yield* Effect.sleep(checkMillis)
      if (waiting.size === 0) break
      silentChecks = isHeard ? 0 : silentChecks + 1
      isHeard = false
      const isLate = silentChecks >= silentChecksMax || ++undecidedChecks >= undecidedChecksMax
      if (isLate && !isRetiring) giveUp(counters.late)
      // One that leaves is asked, too: it decides what it has before it ends.
      if (silentChecks > 0) link?.send({ term: term ?? "", commands: [] })
      answerExpired(nowMillis())
    }
    isChecking = false
  })

  /** Waits one turn of the event loop, so that all commands of the same turn share a frame. */
  const sendOutbox = Effect.andThen(
    Effect.yieldNow,
    Effect.sync(() => {
      if (outbox.length === 0) return
      if (link === undefined || term === undefined) {
        takeBackUnsent()
        return
      }
      const now = nowMillis()
      for (const [id] of outbox) {
        const sent = waiting.get(id)!
        sent.term = term
        sent.sentMillis = now
      }
      link.send({ term, commands: outbox })
      outbox = []
      if (isChecking) return
      isChecking = true
      fork(check)
    })
  )

  const handOver: Peer["handOver"] = (licenseId, command) => {
    if (term === undefined || waiting.size >= waitingMax || link!.backlog() > backlogMax) return false
    const id = nextId++
    command.deadline = clock.currentTimeMillisUnsafe() + timeoutMillis
    waiting.set(id, { licenseId, command, term: undefined, sentMillis: 0 })
    const { span } = command
    outbox.push(toWire(id, licenseId, command, span === undefined ? null : (traces?.handOver(span) ?? null)))
    if (outbox.length === 1) fork(sendOutbox)
    return true
  }

  const open = (): void => {
    if (isClosed) return
    let isSameVersion = false
    const opened = dial(address, masterKey, {
      onText: (text) => {
        const parsed = Result.try(() => JSON.parse(text) as FromOwner)
        if (Result.isFailure(parsed)) {
          opened.close()
          return
        }
        isHeard = true
        const { outcomes, term: named, version } = parsed.success
        if (version !== undefined) {
          isSameVersion = version === wireVersion
          readyMillis = nowMillis()
        }
        if (named !== undefined && isSameVersion && !isRetiring) setTerm(named === "" ? undefined : named)
        for (const outcome of outcomes ?? []) settle(outcome)
      },
      onClose: () => {
        link = undefined
        if (waiting.size > 0) giveUp(counters.lost)
        setTerm(undefined)
        if (!isClosed) fork(Effect.andThen(Effect.sleep(redialMillis), Effect.sync(open)))
      }
    })
    link = opened
  }
  open()
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      link?.close()
    })
  )
  return { handOver, isReady: () => term !== undefined } satisfies Peer
})

const unknownOutcome = refuse(
  "NOT_READY",
  "The database did not answer in time, so it is not known whether the request was carried out: send it again."
)
