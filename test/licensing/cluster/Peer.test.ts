/** A node and the owner that it hands commands over to, over a real connection; the test plays the owner. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, FiberSet, identity, Latch, Option, Queue } from "effect"
import { TestClock } from "effect/testing"
import type { Refusal } from "../../../src/contract/api/Failure.ts"
import { type Link, listen } from "../../../src/licensing/cluster/NodeLink.ts"
import { makePeer } from "../../../src/licensing/cluster/Peer.ts"
import {
  encodeFrames,
  type FromOwner,
  frameBytesMax,
  frameReader,
  type ToOwner,
  wireVersion
} from "../../../src/licensing/cluster/Wire.ts"
import type { Journal } from "../../../src/licensing/engine/Journal.ts"
import type { LicenseActors } from "../../../src/licensing/engine/LicenseActors.ts"
import { type PendingCommand, pendingCommand } from "../../../src/licensing/engine/PendingCommand.ts"
import { check } from "../../../src/licensing/rules/Activation.ts"
import type { MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import { freePort } from "../../support/processes/FreePort.ts"
import { hardware, requestOf } from "../../support/rules/Licenses.ts"

const masterKey = {
  derive: (_: string, keyId = "key") => ({ keyId, secret: Buffer.alloc(32, 7) })
} as unknown as MasterKey["Service"]

/** Lets the event loop handle what has arrived. */
const turn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

const makePair = Effect.gen(function* () {
  const address = { host: "127.0.0.1", port: yield* freePort }
  const links = yield* Queue.unbounded<Link<FromOwner>>()
  const frames = yield* Queue.unbounded<ToOwner>()
  yield* listen(address, masterKey, (link) => {
    Queue.offerUnsafe(links, link)
    return { onText: (text) => void Queue.offerUnsafe(frames, JSON.parse(text)), onClose: () => {} }
  })
  const retired: Array<string> = []
  const decidedHere: Array<string> = []
  const posted: Array<PendingCommand> = []
  const ready: Array<boolean> = []
  const peer = yield* makePeer(address, {
    actors: {
      postHere: (id, command) => {
        decidedHere.push(id)
        posted.push(command)
      }
    } as Partial<LicenseActors["Service"]> as LicenseActors["Service"],
    journal: { retire: (epoch) => Effect.sync(() => void retired.push(epoch)) } as Partial<
      Journal["Service"]
    > as Journal["Service"],
    masterKey,
    timeoutMillis: 10_000,
    traces: undefined,
    onReadiness: () => void ready.push(peer.isReady()),
    fork: yield* FiberSet.makeRuntime<never>()
  })
  const owner = yield* Queue.take(links)
  owner.send({ version: wireVersion, epoch: "first" })
  yield* Effect.repeat(turn, { until: peer.isReady })

  /** How often a sign of life was asked for, as far as frames were read. */
  let signs = 0
  const asksForSign = ({ commands }: ToOwner): boolean => {
    if (commands.length === 0) signs++
    return commands.length === 0
  }
  /** Hands a command over. Returns what waits for its refusal. */
  const post = (license: string, fingerprint = "m") => {
    const answered = Latch.makeUnsafe(false)
    let refusal: Refusal | undefined
    const command = pendingCommand({
      rule: check,
      command: requestOf(hardware(fingerprint)),
      origin: { actor_type: "license", actor_id: license, request_id: "req_1", ip_address: undefined },
      begin: identity,
      span: undefined,
      resume: (exit) => {
        refusal = Exit.findErrorOption(exit).pipe(Option.getOrUndefined)
        if (refusal !== undefined) answered.openUnsafe()
      }
    })
    assert.isTrue(peer.handOver(license, command))
    return Effect.map(answered.await, () => refusal?.code)
  }
  /** Hands a command over, and waits until the owner has it. Returns its number and what waits for its refusal. */
  const handOver = Effect.fnUntraced(function* (license: string) {
    const answered = post(license)
    const { commands } = yield* Effect.repeat(Queue.take(frames), { until: (frame) => !asksForSign(frame) })
    return { id: commands[0]![0], answered }
  })
  const refuse = (id: number, code: "DEVICE_NOT_FOUND" | "NOT_READY", message = "") =>
    owner.send({ outcomes: [[id, "refused", { code, message }]] })
  const signOfLifeAsked = Effect.repeat(Queue.take(frames), { until: asksForSign })
  /** Tells the node an epoch, and waits until it has read that. */
  const tell = (epoch: string, more: FromOwner = {}) => {
    owner.send({ epoch, ...more })
    return Effect.repeat(turn, { until: () => peer.isReady() === (epoch !== "") })
  }
  return {
    decidedHere,
    handOver,
    signOfLifeAsked,
    owner,
    post,
    posted,
    ready,
    refuse,
    retired,
    signs: () => signs,
    tell
  }
})

describe("A command that an owner does not answer", () => {
  it.effect("stays with it while it decides other commands, and is decided here when it is silent", () =>
    Effect.gen(function* () {
      const { decidedHere, handOver, refuse, retired, signOfLifeAsked, signs } = yield* makePair
      yield* handOver("locked")
      for (let round = 0; round < 40; round++) {
        const { answered, id } = yield* handOver("other")
        refuse(id, "DEVICE_NOT_FOUND")
        yield* answered
        yield* TestClock.adjust("40 millis")
      }
      // One that decides is not asked.
      assert.deepStrictEqual([retired, signs()], [[], 0])
      for (let check = 1; check <= 4; check++) {
        yield* TestClock.adjust("40 millis")
        yield* signOfLifeAsked
      }
      assert.deepStrictEqual(retired, [])
      yield* TestClock.adjust("40 millis")
      yield* Effect.repeat(turn, { until: () => retired.length > 0 })
      yield* Effect.repeat(turn, { until: () => decidedHere.length > 0 })
      assert.deepStrictEqual([retired, decidedHere], [["first"], ["locked"]])
    })
  )

  it.effect("stays with one that gives signs of life, also while it leaves", () =>
    Effect.gen(function* () {
      const { handOver, retired, signOfLifeAsked, tell } = yield* makePair
      yield* handOver("waits")
      for (const epoch of ["", "first", ""]) {
        for (let check = 1; check <= 4; check++) {
          yield* TestClock.adjust("40 millis")
          yield* signOfLifeAsked
        }
        yield* tell(epoch)
        yield* TestClock.adjust("40 millis")
      }
      assert.deepStrictEqual(retired, [])
    })
  )

  it.effect("stays with one that waits for a lock, and is decided here when it does not any more", () =>
    Effect.gen(function* () {
      const { decidedHere, handOver, retired, tell } = yield* makePair
      yield* handOver("locked")
      const signs = Effect.fnUntraced(function* (count: number, more: FromOwner) {
        for (let sign = 0; sign < count; sign++) {
          yield* TestClock.adjust("40 millis")
          yield* tell(sign % 2 === 0 ? "" : "first", more)
        }
      })
      yield* signs(40, { waitsForLock: true })
      assert.deepStrictEqual(retired, [])
      yield* signs(19, {})
      assert.deepStrictEqual(retired, [])
      yield* TestClock.adjust("40 millis")
      yield* Effect.repeat(turn, { until: () => decidedHere.length > 0 })
      assert.deepStrictEqual([retired, decidedHere], [["first"], ["locked"]])
    })
  )

  it.effect("is decided here later if the owner runs, but only says that it is not ready", () =>
    Effect.gen(function* () {
      const { decidedHere, handOver, ready, refuse } = yield* makePair
      yield* handOver("waits")
      for (let round = 1; round <= 19; round++) {
        const { answered, id } = yield* handOver("other")
        refuse(id, "NOT_READY")
        yield* answered
        yield* TestClock.adjust("40 millis")
      }
      assert.deepStrictEqual([decidedHere, ready], [[], [true]])
      yield* TestClock.adjust("40 millis")
      yield* Effect.repeat(turn, { until: () => decidedHere.length > 0 })
      assert.deepStrictEqual([decidedHere, ready], [["waits"], [true, false]])
    })
  )
})

it.effect("A command that the owner returns is decided as a repeated one only if the owner had taken it", () =>
  Effect.gen(function* () {
    const { handOver, owner, posted } = yield* makePair
    const [taken, untaken] = [yield* handOver("taken"), yield* handOver("untaken")]
    owner.send({
      outcomes: [
        [taken.id, "undecided"],
        [untaken.id, "untaken"]
      ]
    })
    yield* Effect.repeat(turn, { until: () => posted.length === 2 })
    assert.deepStrictEqual(
      posted.map(({ command }) => (command as { readonly isRepeated?: boolean }).isRepeated),
      [true, undefined]
    )
  })
)

describe("What is too large for one frame", () => {
  it.effect("arrives in several", () =>
    Effect.gen(function* () {
      const { handOver, owner } = yield* makePair
      const commands = yield* Effect.replicateEffect(handOver("any"), 20)
      const message = "x".repeat(1_000_000)
      owner.send({
        outcomes: commands.map(({ id }) => [id, "refused", { code: "DEVICE_NOT_FOUND", message }] as const)
      })
      for (const { answered } of commands) yield* answered
    })
  )

  it.effect("is refused if it is one command, and the others of its turn are handed over", () =>
    Effect.gen(function* () {
      const { handOver, post, refuse } = yield* makePair
      const huge = post("huge", "x".repeat(frameBytesMax))
      const { answered, id } = yield* handOver("other")
      assert.strictEqual(yield* huge, "INTERNAL_ERROR")
      refuse(id, "DEVICE_NOT_FOUND")
      assert.strictEqual(yield* answered, "DEVICE_NOT_FOUND")
    })
  )

  it("is divided, and nothing else is", () => {
    const small: ToOwner = { epoch: "t", commands: [] }
    assert.lengthOf(encodeFrames(small), 1)
    const outcomes = Array.from(
      { length: 9 },
      (_, id) => [id, "signed", "ü".repeat(2_000_000), "kid", "value"] as const
    )
    const received: Array<FromOwner> = []
    const read = frameReader((text) => void received.push(JSON.parse(text)))
    for (const frame of encodeFrames({ outcomes })) {
      assert.isAtMost(frame.length, frameBytesMax + 4)
      assert.isTrue(read(frame))
    }
    assert.deepStrictEqual(
      received.flatMap((each) => each.outcomes ?? []).map(([id]) => id),
      outcomes.map(([id]) => id)
    )
    const refused: Array<number> = []
    const huge = [9, "signed", "x".repeat(frameBytesMax), "", ""] as const
    const frames = encodeFrames({ outcomes: [outcomes[0]!, huge, outcomes[1]!] }, (id) => refused.push(id))
    assert.deepStrictEqual([refused, frames.length], [[9], 2])
  })
})
