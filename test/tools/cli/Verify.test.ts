/** `licensing verify`, on the published vectors. */
import { readFileSync } from "node:fs"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, layer } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { fromSeed, signSync } from "../../../src/platform/signing/SigningKey.ts"
import { runLine } from "../../support/processes/CommandLine.ts"

const vectors = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../../schema/vectors/${name}.json`, import.meta.url), "utf8"))
const responses = vectors("responses")

interface Expectation {
  readonly kind: string | null
  readonly license_id: string
  readonly product_id: string
  readonly product_code: string
  readonly binding: { readonly key: string }
  readonly nonce: string | null
  readonly clock: { readonly now: string; readonly highest_issued_at: string | null }
}

const flagsOf = ({ binding, clock, kind, license_id, nonce, product_code, product_id }: Expectation) =>
  Object.entries({
    kind,
    "license-id": license_id,
    "product-id": product_id,
    "product-code": product_code,
    fingerprint: binding.key,
    nonce,
    now: clock.now,
    "highest-issued-at": clock.highest_issued_at
  }).flatMap(([name, value]) => (value === null ? [] : [`--${name}=${value}`]))

/** Writes files into a folder, which the commands get as the caller's. */
const folderOf = Effect.fnUntraced(function* (contents: Readonly<Record<string, string>>) {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped()
  for (const [name, text] of Object.entries(contents)) yield* files.writeFileString(`${folder}/${name}`, text)
  return { INIT_CWD: folder }
})

/** When the published envelopes were issued. */
const issuedAt = "2030-01-31T12:00:00Z"

const keys = { "keys.json": JSON.stringify({ data: responses.keys, meta: {} }) }

layer(NodeFileSystem.layer, { excludeTestServices: true })("`licensing verify`", (it) => {
  it.effect("gives the published verdict on each response", () =>
    Effect.gen(function* () {
      for (const { expected, name, response, rule } of responses.vectors) {
        const flags = flagsOf({ ...responses.expected, ...expected })
        const folder = yield* folderOf({ ...keys, response })
        const text = yield* runLine(folder, "verify", "response", "--keys", "keys.json", ...flags)
        const json = yield* runLine(folder, "verify", "response", "--keys", "keys.json", "--json", ...flags)
        const verdict = JSON.parse(json.out)
        assert.deepStrictEqual([text.code, json.code], rule === undefined ? [0, 0] : [1, 1], `${name}: ${text.error}`)
        assert.match(
          text.out,
          rule === undefined ? /^genuine: / : new RegExp(`^not genuine: it breaks the rule ${rule}:`)
        )
        assert.deepStrictEqual([verdict.genuine, verdict.rule], [rule === undefined, rule])
      }
    })
  )

  it.effect("says which rules had nothing to compare", () =>
    Effect.gen(function* () {
      const folder = yield* folderOf({ ...keys, response: responses.vectors[0].response })
      const flags = ["--keys=keys.json", "--now=2030-01-31T12:00:00Z", "--product-code=editor-pro"]
      const { code, out } = yield* runLine(folder, "verify", "response", "--json", ...flags)
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(JSON.parse(out).unchecked_rules, ["kind", "license", "binding", "nonce"])
    })
  )

  it.effect("opens offline envelopes with the license key, alone or in their response", () =>
    Effect.gen(function* () {
      const { invalid, keys, valid } = vectors("offline-envelopes")
      const signer = fromSeed(new Uint8Array(Buffer.from(keys[0].seed_hex, "hex")))
      const verdicts = (licenseKey: string, envelope: object) =>
        Effect.gen(function* () {
          const data = JSON.stringify(envelope)
          const value = Buffer.from(signSync(signer, Buffer.from(data))).toString("base64")
          const signature = JSON.stringify({ alg: "Ed25519", kid: keys[0].kid, value })
          const folder = yield* folderOf({
            "keys.json": JSON.stringify(keys),
            "key.txt": `${licenseKey.toLowerCase()}\n`,
            alone: data,
            answer: `{"data":${data},"signature":${signature},"meta":{}}`,
            forged: `{"data":${data},"signature":${signature.replace(/.{4}"}$/, 'AA=="}')},"meta":{}}`
          })
          const flags = ["--keys=keys.json", "--license-key-file=key.txt", `--now=${issuedAt}`]
          return yield* Effect.forEach(["alone", "answer", "forged"], (name) =>
            Effect.map(runLine(folder, "verify", name, ...flags), ({ code, out }) => {
              assert.notInclude(out, licenseKey)
              return code
            })
          )
        })
      for (const { envelope, license_key, name } of valid)
        assert.deepStrictEqual(yield* verdicts(license_key, envelope), [0, 0, 1], name)
      for (const { envelope, license_key, name } of invalid) {
        // The command takes a key in any form and uses the issued one.
        if (name === "the license key in small letters") continue
        assert.deepStrictEqual(yield* verdicts(license_key, envelope), [1, 1, 1], name)
      }
    })
  )

  it.effect("exits with 2 where it cannot tell, and prints no verdict", () =>
    Effect.gen(function* () {
      const folder = yield* folderOf({
        ...keys,
        response: responses.vectors[0].response,
        envelope: '{"kid":"","salt":"","nonce":"","ciphertext":""}',
        "no-keys.json": "{}",
        "no-key.txt": "LK-"
      })
      for (const args of [
        ["response"],
        ["response", "--keys", "missing.json"],
        ["missing", "--keys", "keys.json"],
        ["response", "--keys", "no-keys.json"],
        ["response", "--keys", "keys.json", "--now", "today"],
        ["response", "--keys", "keys.json", "--kind", "everything"],
        ["envelope", "--keys", "keys.json"],
        ["envelope", "--keys", "keys.json", "--license-key-file", "no-key.txt"]
      ]) {
        const { code, out } = yield* runLine(folder, "verify", ...args)
        assert.strictEqual(code, 2, args.join(" "))
        assert.notInclude(out, "genuine: ")
      }
    })
  )
})
