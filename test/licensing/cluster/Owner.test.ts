/** A node as an owner, by what it sends to another node; the test plays that node and its license actors. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Link } from "../../../src/licensing/cluster/NodeLink.ts"
import { makeOwner } from "../../../src/licensing/cluster/Owner.ts"
import {
  encodeFrames,
  type FromOwner,
  frameBytesMax,
  type HandedOver,
  type ToOwner,
  wireVersion
} from "../../../src/licensing/cluster/Wire.ts"
import { Journal } from "../../../src/licensing/engine/Journal.ts"
import { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import type { PendingCommand } from "../../../src/licensing/engine/PendingCommand.ts"
import { type Signed, Signer } from "../../../src/platform/signing/Signer.ts"

const heartbeat = (id: number): HandedOver => [id, "heartbeat", `lic_${id}`, {}, "req_1", null, null, null]

const makeSubject = Effect.gen(function* () {
  const posted: Array<PendingCommand> = []
  const onRenewed = new Set<(retired: string) => void>()
  let isLocked = false
  const actors: Partial<LicenseActors["Service"]> = { postHere: (_, command) => void posted.push(command) }
  const journal: Partial<Journal["Service"]> = {
    retire: () => Effect.void,
    waitsForLock: () => isLocked,
    epoch: { current: "second", renew: () => {}, onRenewed }
  }
  const owner = yield* makeOwner.pipe(
    Effect.provideService(LicenseActors, actors as LicenseActors["Service"]),
    Effect.provideService(Journal, journal as Journal["Service"]),
    Effect.provideService(Signer, {} as Signer["Service"])
  )
  const sent: Array<FromOwner> = []
  const link: Link<FromOwner> = {
    send: (message, onTooLarge) => {
      for (const frame of encodeFrames(message, onTooLarge)) sent.push(JSON.parse(frame.toString("utf8", 4)))
    },
    close: () => {},
    backlog: () => 0
  }
  const { onText } = owner.accept(link)
  assert.deepStrictEqual(sent.splice(0), [{ version: wireVersion, epoch: "second" }])
  /** What the owner sends when it gets this. */
  const answersTo = (message: ToOwner) =>
    Effect.gen(function* () {
      onText(JSON.stringify(message))
      // Outcomes of the same turn share a frame.
      yield* Effect.yieldNow
      yield* Effect.yieldNow
      return sent.splice(0)
    })
  const setLocked = (locked: boolean) => {
    isLocked = locked
  }
  /** The first epoch is retired; its successor is the current one. */
  const renew = () => {
    for (const listener of onRenewed) listener("first")
  }
  return { answersTo, leave: owner.leave, posted, renew, sent, setLocked }
})

describe("An owner", () => {
  it.effect("that is asked for a sign of life tells its epoch, whatever epoch the other node knows", () =>
    Effect.gen(function* () {
      const { answersTo } = yield* makeSubject
      for (const epoch of ["second", "first", ""])
        assert.deepStrictEqual(yield* answersTo({ epoch, commands: [] }), [{ epoch: "second" }])
    })
  )

  it.effect("that is asked for a sign of life tells whether it waits for a lock", () =>
    Effect.gen(function* () {
      const { answersTo, setLocked } = yield* makeSubject
      setLocked(true)
      assert.deepStrictEqual(yield* answersTo({ epoch: "", commands: [] }), [{ epoch: "second", waitsForLock: true }])
      setLocked(false)
      assert.deepStrictEqual(yield* answersTo({ epoch: "", commands: [] }), [{ epoch: "second" }])
    })
  )

  it.effect("gives signs of life while a command waits, and decides commands of its current epoch only", () =>
    Effect.gen(function* () {
      const { answersTo, posted } = yield* makeSubject
      assert.deepStrictEqual(yield* answersTo({ epoch: "second", commands: [heartbeat(1)] }), [])
      assert.lengthOf(posted, 1)
      assert.deepStrictEqual(yield* answersTo({ epoch: "second", commands: [] }), [{ epoch: "second" }])
      const outcomes = [[2, "untaken"]] as const
      assert.deepStrictEqual(yield* answersTo({ epoch: "first", commands: [heartbeat(2)] }), [{ outcomes }])
      assert.lengthOf(posted, 1)
    })
  )

  it.effect("refuses a command whose outcome is too large for the other node", () =>
    Effect.gen(function* () {
      const { answersTo, posted } = yield* makeSubject
      yield* answersTo({ epoch: "second", commands: [heartbeat(1), heartbeat(2)] })
      const bytes = "x".repeat(frameBytesMax)
      const signed: Signed = { bytes, signature: { alg: "Ed25519", kid: "kid", value: "value" } }
      posted[0]!.resume(
        Exit.succeed((onSignature: (exit: Exit.Exit<Signed>) => void) => onSignature(Exit.succeed(signed)))
      )
      posted[1]!.resume(Exit.die("no outcome"))
      const answers = yield* answersTo({ epoch: "second", commands: [] })
      const [refused, other] = answers.flatMap(({ outcomes = [] }) => outcomes)
      assert.deepInclude(refused?.[2], { code: "INTERNAL_ERROR" })
      assert.deepStrictEqual(other, [2, "undecided"])
    })
  )

  it.effect(
    "that leaves still gives signs of life, without an epoch, until it has decided what it has taken over",
    () =>
      Effect.gen(function* () {
        const { answersTo, leave, posted, sent } = yield* makeSubject
        yield* answersTo({ epoch: "second", commands: [heartbeat(1)] })
        const left = yield* Effect.forkChild(leave, { startImmediately: true })
        assert.deepStrictEqual(sent.splice(0), [{ epoch: "" }])
        assert.deepStrictEqual(yield* answersTo({ epoch: "second", commands: [] }), [{ epoch: "" }])
        assert.deepStrictEqual(yield* answersTo({ epoch: "second", commands: [heartbeat(2)] }), [
          { outcomes: [[2, "untaken"]] }
        ])
        assert.isUndefined(left.pollUnsafe())
        posted[0]!.resume(Exit.die("no outcome"))
        yield* TestClock.adjust("50 millis")
        yield* Fiber.join(left)
        assert.deepStrictEqual(sent, [{ outcomes: [[1, "undecided"]] }])
      })
  )

  it.effect("tells a new epoch to the other nodes, and none while it leaves", () =>
    Effect.gen(function* () {
      const { leave, renew, sent } = yield* makeSubject
      renew()
      assert.deepStrictEqual(sent.splice(0), [{ epoch: "second" }])
      yield* leave
      assert.deepStrictEqual(sent.splice(0), [{ epoch: "" }])
      renew()
      assert.deepStrictEqual(sent, [{ epoch: "" }])
    })
  )
})
