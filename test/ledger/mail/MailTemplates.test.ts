/** The operator's templates of mails. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer } from "effect"
import { MailTemplates } from "../../../src/ledger/mail/MailTemplates.ts"
import { Settings } from "../../../src/platform/config/Config.ts"

/** The templates with a file of this name in the operator's folder. */
const withFile = Effect.fnUntraced(function* (name: string) {
  const files = yield* FileSystem.FileSystem
  const mailTemplates = yield* files.makeTempDirectoryScoped()
  yield* files.writeFileString(`${mailTemplates}/${name}`, "Subject: Key\n\nUntil {{expires_at}}\n")
  const layer = MailTemplates.layer.pipe(Layer.provide(Settings.layerTest({ mailTemplates })))
  return Context.get(yield* Layer.build(layer), MailTemplates)
})

describe("A template", () => {
  it.effect("writes dates in its language", () =>
    Effect.gen(function* () {
      const { render } = yield* withFile("license_key.pt-BR.txt")
      const { text } = render("license_key", {
        to: { address: "a@example.com", language: "pt-BR" },
        values: { expires_at: 0 }
      })
      assert.strictEqual(text, "Until 1 de janeiro de 1970\n")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("is the one of the nearest language: without the region, then without the script", () =>
    Effect.gen(function* () {
      const { render } = yield* withFile("license_key.zh-Hant.txt")
      const subjectIn = (language: string) =>
        render("license_key", { to: { address: "a@example.com", language }, values: { license_key: "LK-A" } }).subject
      assert.strictEqual(subjectIn("zh-Hant-TW"), "Key")
      assert.strictEqual(subjectIn("zh-hant"), "Key")
      assert.include(subjectIn("zh-Hans-CN"), "Your license key")
      assert.include(subjectIn("de-Latn-AT"), "Ihr Lizenzschlüssel")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("of something that is not a language stops the start, not the mails", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(withFile("license_key.en-usa.txt"))
      assert.match(message, /^LICENSING_MAIL_TEMPLATES: en-usa in license_key\.en-usa\.txt is not a language tag/)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
