/** Mails as a mail server gets them, and what becomes of them when it refuses, hangs or is away. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeMailServer } from "../../support/http/MailServer.ts"
import { poll } from "../../support/rules/Poll.ts"
import { counts, key, layers, linkTo, makeNode, rows } from "./MailNode.ts"

describe("A mail", () => {
  it.effect("arrives as text and HTML in the recipient's language, and its row goes", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      const values = { license_key: key }
      yield* queue({ kind: "license_key", to: { address: "ada@example.com", name: "Ada", language: "de-AT" }, values })
      const [queued] = yield* rows
      yield* pass
      const mail = yield* server.next
      assert.strictEqual(mail.id, `<${queued!.id}@example.com>`)
      assert.match(mail.from, /^Example Ltd <licenses@example\.com>$/)
      assert.match(mail.head, /^To: Ada <ada@example\.com>\r$/m)
      assert.match(mail.head, /^Auto-Submitted: auto-generated\r$/m)
      assert.include(mail.subject, "Ihr Lizenzschlüssel")
      assert.include(mail.text, "Guten Tag Ada,")
      assert.include(mail.text, key)
      assert.include(mail.html, `>${key}</code>`)
      assert.include(mail.html, `<html lang="de">`)
      assert.deepStrictEqual(yield* rows, [])
      assert.deepStrictEqual(yield* counts, { sent: 1, failed: 0, given_up: 0, last_failure: null })
    }).pipe(Effect.provide(layers))
  )

  it.effect("whose attempt failed is tried again later under the same Message-ID", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      server.reply((stage) => (stage === "data" ? 451 : undefined))
      yield* queue(linkTo("a@example.com", { expires_at: 3_600_000 }))
      yield* pass
      const first = yield* server.next
      assert.strictEqual((yield* rows)[0]!.attempts, 1)
      server.reply(() => undefined)
      yield* pass
      assert.deepStrictEqual(server.accepted, [])
      yield* TestClock.adjust("67 seconds")
      yield* pass
      assert.strictEqual((yield* server.next).id, first.id)
      assert.deepStrictEqual(yield* rows, [])
      assert.deepStrictEqual(yield* counts, { sent: 1, failed: 1, given_up: 0, last_failure: "status_451" })
    }).pipe(Effect.provide(layers))
  )

  it.effect("is given up when the recipient is refused for good, and the others still arrive", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      const replies: Record<string, number> = { "gone@example.com": 550, "grey@example.com": 450 }
      server.reply((stage, address) => (stage === "recipient" ? replies[address] : undefined))
      yield* queue(linkTo("gone@example.com"), linkTo("grey@example.com"), linkTo("here@example.com"))
      yield* pass
      assert.deepStrictEqual(
        server.accepted.map(({ to }) => to),
        ["here@example.com"]
      )
      const [kept, ...others] = yield* rows
      assert.deepStrictEqual([kept!.attempts, others], [1, []])
      const { failed, given_up, sent } = yield* counts
      assert.deepStrictEqual({ failed, given_up, sent }, { failed: 2, given_up: 1, sent: 1 })
    }).pipe(Effect.provide(layers))
  )

  it.effect("waits for a slow server on its own connection only, and is tried again", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      server.reply((stage, address) => (stage === "data" && address === "slow@example.com" ? "hang" : undefined))
      const others = Array.from({ length: 9 }, (_, index) => `m${index}@example.com`)
      yield* queue(linkTo("slow@example.com"), ...others.map((address) => linkTo(address)))
      const passing = yield* Effect.forkChild(pass)
      yield* Effect.replicateEffect(server.next, 10)
      yield* poll(rows, ({ length }) => length === 1)
      yield* TestClock.adjust("60 seconds")
      yield* Fiber.join(passing)
      assert.sameMembers(
        server.accepted.map(({ to }) => to),
        others
      )
      const [kept] = yield* rows
      assert.deepStrictEqual([kept!.attempts, kept!.leased_until], [1, null])
      assert.strictEqual((yield* counts).last_failure, "timeout")
      server.reply(() => undefined)
      yield* TestClock.adjust("67 seconds")
      yield* pass
      assert.deepStrictEqual(yield* rows, [])
    }).pipe(Effect.provide(layers))
  )

  it.effect("passes a server that greylists its first attempt", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      const seen = new Set<string>()
      server.reply((stage, address) => {
        if (stage !== "recipient" || seen.has(address)) return undefined
        seen.add(address)
        return 451
      })
      yield* queue(linkTo("a@example.com"), linkTo("b@example.com"))
      yield* pass
      assert.deepStrictEqual(server.accepted, [])
      yield* TestClock.adjust("67 seconds")
      yield* pass
      assert.lengthOf(server.accepted, 2)
      assert.deepStrictEqual(yield* rows, [])
    }).pipe(Effect.provide(layers))
  )

  it.effect("is given up when the server refuses it for good, also if it then closes the connection", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      server.reply((stage, address) => (stage === "data" && address === "a@example.com" ? "554 and close" : undefined))
      yield* queue(linkTo("a@example.com"), linkTo("b@example.com"))
      yield* pass
      assert.deepStrictEqual(
        server.accepted.map(({ to }) => to),
        ["b@example.com"]
      )
      assert.deepStrictEqual(yield* rows, [])
      assert.deepStrictEqual(yield* counts, { sent: 1, failed: 1, given_up: 1, last_failure: "status_554" })
    }).pipe(Effect.provide(layers))
  )

  it.effect("is given up when its recipient is refused and the connection then ends, but not for its sender", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      server.reply((stage) => (stage === "sender" ? "550 and close" : undefined))
      yield* queue(linkTo("a@example.com"))
      yield* pass
      assert.strictEqual((yield* rows)[0]!.attempts, 0)
      // The commands after a refused one are sent with it, and get no reply.
      server.reply((stage) => (stage === "recipient" ? "550 and close" : undefined))
      yield* TestClock.adjust("5 seconds")
      yield* pass
      assert.deepStrictEqual(yield* rows, [])
      assert.deepStrictEqual(yield* counts, { sent: 0, failed: 2, given_up: 1, last_failure: "status_550" })
    }).pipe(Effect.provide(layers))
  )

  it.effect("is given up when it is larger than the server accepts, announced or not", () =>
    Effect.gen(function* () {
      const announced = yield* makeMailServer({ size: 500 })
      const node = yield* makeNode(announced)
      yield* node.queue(linkTo("a@example.com"))
      yield* node.pass
      assert.deepStrictEqual(yield* rows, [])
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      server.reply((stage) => (stage === "sender" ? 552 : undefined))
      yield* queue(linkTo("b@example.com"))
      yield* pass
      assert.deepStrictEqual(yield* rows, [])
      assert.deepStrictEqual(yield* counts, { sent: 0, failed: 2, given_up: 2, last_failure: "too_large" })
    }).pipe(Effect.provide(layers))
  )

  it.effect("is sent after the server closed the connection in the middle", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      server.reply((stage, address) => (stage === "data" && address === "a@example.com" ? "close" : undefined))
      yield* queue(linkTo("a@example.com"), linkTo("b@example.com"))
      yield* pass
      assert.deepStrictEqual(
        server.accepted.map(({ to }) => to),
        ["b@example.com"]
      )
      server.reply(() => undefined)
      yield* TestClock.adjust("67 seconds")
      yield* pass
      assert.deepStrictEqual(
        server.accepted.map(({ to }) => to),
        ["b@example.com", "a@example.com"]
      )
    }).pipe(Effect.provide(layers))
  )

  it.effect("waits without attempts of its own while the server cannot be reached", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      server.reply((stage) => (stage === "connect" ? 421 : undefined))
      yield* queue(linkTo("a@example.com"))
      yield* pass
      const [row] = yield* rows
      assert.deepStrictEqual([row!.attempts, row!.leased_until], [0, null])
      server.reply(() => undefined)
      yield* pass
      assert.deepStrictEqual(server.accepted, [])
      yield* TestClock.adjust("5 seconds")
      yield* pass
      assert.lengthOf(server.accepted, 1)
    }).pipe(Effect.provide(layers))
  )

  it.effect("is given up and removed after a day, or when it expires", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      server.reply((stage) => (stage === "connect" ? 421 : undefined))
      yield* queue(linkTo("soon@example.com", { expires_at: 900_000 }), linkTo("later@example.com"))
      yield* TestClock.adjust("15 minutes")
      yield* pass
      assert.lengthOf(yield* rows, 1)
      yield* TestClock.adjust("1 day")
      yield* pass
      assert.deepStrictEqual(yield* rows, [])
      assert.strictEqual((yield* counts).given_up, 2)
    }).pipe(Effect.provide(layers))
  )
})
