/** What becomes of connections whose thread ends. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { makeSmtpThread } from "../../../src/ledger/mail/SmtpThread.ts"

const sender = {
  server: { host: "127.0.0.1", port: 9, tls: "none" as const, user: undefined, password: "" },
  from: { address: "licenses@example.com", name: "Example" }
}
const mail = {
  ...{ id: "mail_1", subject: "Subject", text: "Text", html: "<p>Text</p>" },
  to: { address: "ada@example.com" },
  created_at: 0
}

/** A thread that says yes to each connection, and ends at the first mail. */
const ending = new URL(
  "data:text/javascript,import { parentPort } from 'node:worker_threads'; parentPort.on('message', ({ does, connection }) => " +
    "{ if (does === 'send') process.exit(); parentPort.postMessage({ connection }) })"
)

describe("the mail thread", () => {
  it.live("has failed for all its connections when it ends, which is logged, and another one starts", () => {
    const logged: Array<unknown> = []
    return Effect.gen(function* () {
      const connect = yield* makeSmtpThread(sender, ending)
      const failed = { reason: "connection_failed", isFinal: false, isConnected: false }
      const [first, second] = [yield* connect, yield* connect]
      const failures = yield* Effect.all([Effect.flip(first.send(mail)), Effect.flip(second.send(mail))], {
        concurrency: 2
      })
      assert.deepStrictEqual(failures, [failed, failed])
      assert.deepStrictEqual(yield* Effect.flip(first.send(mail)), failed)
      const next = yield* connect
      assert.deepStrictEqual(yield* Effect.flip(next.send(mail)), failed)
      const message = "The mail thread has ended; the next connection starts another one."
      assert.deepStrictEqual(logged, Array(2).fill([message, { error: 0 }]))
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([Logger.make(({ message }) => void logged.push(message))])))
  })
})
