/** Names of customers in mails: shown as they are, and never more than a name. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { NewMail } from "../../../src/ledger/mail/QueuedMail.ts"
import { decodedWords, headerOf, makeMailServer, type ReceivedMail } from "../../support/http/MailServer.ts"
import { key, layers, makeNode } from "./MailNode.ts"

/** The recipient's name as a mail program shows it: encoded words, or a quoted string, before the only address. */
const shownName = ({ head, to }: ReceivedMail): string => {
  const header = headerOf(head, "To")
  assert.isTrue(header.endsWith(` <${to}>`), header)
  const name = header.slice(0, -to.length - 3)
  return name.startsWith('"') ? name.slice(1, -1).replaceAll(/\\(.)/g, "$1") : decodedWords(name)
}

describe("A mail", () => {
  it.effect("shows any name as it is, in one header that every mail program reads", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      const names = [
        "Jörg Müller-Lüdenscheidt",
        `Ada "Countess" O'Lovelace`,
        "Doe, Jane; <root@example.com>",
        "back\\slash (comment) [x]",
        "日本語の名前 👩‍🚀",
        "Ünï ".repeat(40).trim(),
        "=?UTF-8?Q?Your_bank?=",
        "plain=equals?and_underscores"
      ]
      yield* queue(
        ...names.map((name, index): NewMail => {
          const to = { address: `n${index}@example.com`, name }
          return { kind: "license_key", to, values: { license_key: key } }
        })
      )
      yield* pass
      for (const [index, name] of names.entries()) {
        const mail = server.accepted.find(({ to }) => to === `n${index}@example.com`)!
        assert.strictEqual(shownName(mail), name)
        assert.include(mail.text, name)
        assert.match(mail.head, /^[\x20-\x7e\r\n\t]*$/, "headers are ASCII")
        for (const line of mail.head.split("\r\n")) assert.isAtMost(line.length, 78)
        for (const [word] of mail.head.matchAll(/=\?[^ ]*?\?=/g)) assert.isAtMost(word.length, 75)
      }
    }).pipe(Effect.provide(layers))
  )

  it.effect("cannot add headers or recipients by the names in it", () =>
    Effect.gen(function* () {
      const server = yield* makeMailServer()
      const { pass, queue } = yield* makeNode(server)
      const name = `Eve\r\nBcc: victim@example.com\r\n\r\n<script>alert(1)</script> 日本 ${"x".repeat(300)}\u202e`
      yield* queue({ kind: "license_key", to: { address: "eve@example.com", name }, values: { license_key: key } })
      yield* pass
      const mail = yield* server.next
      assert.strictEqual(mail.to, "eve@example.com")
      assert.notMatch(mail.head, /^Bcc/im)
      assert.notInclude(mail.html, "<script>")
      assert.include(mail.text, "日本")
      assert.notInclude(mail.text, "\u202e")
      for (const line of mail.head.split("\r\n")) assert.isBelow(line.length, 999)
    }).pipe(Effect.provide(layers))
  )
})
