/** The connection to an owner: dials it again whenever the connection is lost, and reads what the owner sends. */
import { Clock, Effect, Result } from "effect"
import type { NodeAddress } from "../../platform/config/Setting.ts"
import { monotonicMillis } from "../../platform/postgres/driver/Deadline.ts"
import type { MasterKey } from "../../platform/signing/MasterKey.ts"
import { dial, type Link } from "./NodeLink.ts"
import { type FromOwner, type Outcome, type ToOwner, wireVersion } from "./Wire.ts"

/**
 * The pause before a node is dialed again: doubled if it lets commands wait again soon, so that an overloaded owner is
 * left alone.
 */
const redialMillisMin = 500
const redialMillisMax = 8_000
const soonMillis = 10_000

interface OwnerEvents {
  /** The owner sent something, perhaps that it waits for a lock. */
  onHeard(waitsForLock: boolean): void
  /** The owner, which speaks this node's version, named its epoch. Empty: it takes no more commands. */
  onEpoch(epoch: string): void
  onOutcome(outcome: Outcome): void
  /** The connection is closed; it is dialed again after a pause. */
  onLost(): void
}

interface OwnerConnection {
  isOpen(): boolean
  /** Sends nothing while the connection is lost. */
  readonly send: Link<ToOwner>["send"]
  close(): void
  /** Bytes that the owner has not read yet. */
  backlog(): number
  /** The owner was late or lost: sets the pause before it is dialed again. */
  backOff(): void
}

/** Stays connected until the scope ends. */
export const makeOwnerConnection = Effect.fnUntraced(function* (
  address: NodeAddress,
  masterKey: MasterKey["Service"],
  fork: (effect: Effect.Effect<void>) => unknown,
  events: OwnerEvents
) {
  const clock = yield* Clock.Clock
  const nowMillis = () => monotonicMillis(clock)
  let link: Link<ToOwner> | undefined
  let isClosed = false
  let redialMillis = redialMillisMin
  /** When the owner last named its version. */
  let readyMillis = 0

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
        const { outcomes, epoch, version, waitsForLock } = parsed.success
        events.onHeard(waitsForLock === true)
        if (version !== undefined) {
          isSameVersion = version === wireVersion
          readyMillis = nowMillis()
        }
        if (epoch !== undefined && isSameVersion) events.onEpoch(epoch)
        for (const outcome of outcomes ?? []) events.onOutcome(outcome)
      },
      onClose: () => {
        link = undefined
        events.onLost()
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
  return {
    isOpen: () => link !== undefined,
    send: (message, onTooLarge?: (id: number) => void) => link?.send(message, onTooLarge),
    close: () => link?.close(),
    backlog: () => link?.backlog() ?? 0,
    backOff: () => {
      const wasReadySoon = nowMillis() - readyMillis <= soonMillis
      redialMillis = wasReadySoon ? Math.min(2 * redialMillis, redialMillisMax) : redialMillisMin
    }
  } satisfies OwnerConnection
})
