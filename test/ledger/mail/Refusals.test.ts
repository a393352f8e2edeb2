/** Refusals that concern all mails: of the sender, of the connection, of the sign-in. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { certificate, privateKey } from "../../support/http/Http.ts"
import { mailSettingsOf, makeMailServer } from "../../support/http/MailServer.ts"
import { counts, layers, linkTo, makeNode, rows } from "./MailNode.ts"

describe("A mail", () => {
  for (const [refusing, reply, reason] of [
    ["sender", 553, "sender_refused"],
    ["sender", 530, "sign_in_refused"],
    // Exchange Online (2025)
    ["data", "554 5.2.252 SendAsDenied; a@example.com not allowed to send as b@example.com", "sender_refused"],
    ["data", "550 5.7.60 SMTP; Client does not have permissions to send as this sender", "sender_refused"]
  ] as const)
    it.effect(`waits like all others while the server refuses the sender with ${reply}, because a setting helps`, () =>
      Effect.gen(function* () {
        const server = yield* makeMailServer()
        const { pass, queue } = yield* makeNode(server)
        server.reply((stage) => (stage === refusing ? reply : undefined))
        const addresses = Array.from({ length: 12 }, (_, index) => `m${index}@example.com`)
        yield* queue(...addresses.map((address) => linkTo(address)))
        yield* pass
        const waiting = (yield* rows).map(({ attempts, leased_until }) => [attempts, leased_until])
        assert.deepStrictEqual(waiting, Array(addresses.length).fill([0, null]))
        assert.deepStrictEqual(yield* counts, { sent: 0, failed: 1, given_up: 0, last_failure: reason })
        server.reply(() => undefined)
        yield* pass
        assert.deepStrictEqual(server.accepted, [])
        yield* TestClock.adjust("5 seconds")
        yield* pass
        assert.lengthOf(server.accepted, addresses.length)
      }).pipe(Effect.provide(layers))
    )

  it.effect("delays no other mail when the server refuses the parameters of its sender", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      let senders = 0
      server.reply((stage) => (stage === "sender" && ++senders === 1 ? 555 : undefined))
      yield* queue(linkTo("a@example.com"), linkTo("b@example.com"))
      yield* pass
      assert.lengthOf(server.accepted, 1)
      assert.strictEqual((yield* rows)[0]!.attempts, 1)
      assert.deepStrictEqual(yield* counts, { sent: 1, failed: 1, given_up: 0, last_failure: "status_555" })
    }).pipe(Effect.provide(layers))
  )
})

describe("A connection", () => {
  const tls = { hideSTARTTLS: false, key: privateKey, cert: certificate }

  it.effect("sends nothing when the server offers no TLS where it is required", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer({ disabledCommands: ["STARTTLS"] })
      const { mailFrom } = mailSettingsOf(server)
      // Leads to this machine, but is not exempt from TLS as its names are.
      const smtpUrl = Redacted.make(`smtp://0.0.0.0:${server.port}`)
      const { pass, queue } = yield* makeNode(server, { smtpUrl, mailFrom })
      yield* queue(linkTo("a@example.com"))
      yield* pass
      assert.deepStrictEqual(server.accepted, [])
      assert.strictEqual((yield* counts).last_failure, "tls_failed")
    }).pipe(Effect.provide(layers))
  )

  it.effect("sends nothing to a server whose certificate is not trusted", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer({ ...tls, secure: true })
      const { pass, queue } = yield* makeNode(server, mailSettingsOf(server, "smtps"))
      yield* queue(linkTo("a@example.com"))
      yield* pass
      assert.deepStrictEqual(server.accepted, [])
      assert.strictEqual((yield* counts).last_failure, "tls_failed")
    }).pipe(Effect.provide(layers))
  )

  it.effect("signs in with the user and password of the URL, and keeps mails while they are refused", () =>
    Effect.gen(function* () {
      let password = "p@ss word"
      const server = yield* makeMailServer({
        authOptional: false,
        allowInsecureAuth: true,
        onAuth: (auth, _, done) =>
          auth.username === "licensing" && auth.password === password
            ? done(null, { user: auth.username })
            : done(new Error("no"))
      })
      const { pass, queue } = yield* makeNode(server, mailSettingsOf(server, "smtp", "licensing:p%40ss%20word@"))
      yield* queue(linkTo("a@example.com"))
      yield* pass
      assert.strictEqual((yield* server.next).user, "licensing")
      password = "another"
      yield* queue(linkTo("b@example.com"))
      yield* pass
      assert.strictEqual((yield* rows)[0]!.attempts, 0)
      assert.strictEqual((yield* counts).last_failure, "sign_in_refused")
    }).pipe(Effect.provide(layers))
  )
})
