/** The messages in the code: every refusal says in plain words what to do. Messages of responses are checked wherever tests get one. */
import { readdirSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { statuses } from "../../../src/contract/api/ErrorCode.ts"
import { refuseUnknownId } from "../../../src/contract/api/Failure.ts"
import { refuseUnknownLicense } from "../../../src/licensing/model/UnknownLicense.ts"
import { messageFault } from "../../support/rules/PlainWords.ts"
import { operations } from "../cases/Surface.ts"

const root = new URL("../../../src/", import.meta.url)
const sources = readdirSync(root, { recursive: true, encoding: "utf8" })
  // The database's messages are lines on the console; they may quote the server's own words.
  .filter((path) => path.endsWith(".ts") && !path.startsWith("platform/postgres/"))
  .map((path) => ({ path, text: readFileSync(new URL(path, root), "utf8") }))

/** Code, then a text literal or a template, as the arguments of the functions that make refusals. */
const made = /\b(?:refuse|reject|refuseLimit)\(\s*(?:view,\s*)?"([A-Z_]+)",\s*("(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)/g
/** The local functions with a code of their own. */
const other = /\b(?:invalid|mismatch|refuseLapsed|badRequest|unavailable)\(\s*("(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)/g

/** The message with a word for each value. */
const textOf = (literal: string): string =>
  literal
    .slice(1, -1)
    .replaceAll(/\$\{(?:[^{}]|\{[^}]*\})*\}/g, "value")
    .replace(/\.value$/, ".")

const messages = sources.flatMap(({ path, text }) => [
  ...Array.from(text.matchAll(made), ([, code = "", literal = ""]) => ({ path, code, message: textOf(literal) })),
  ...Array.from(text.matchAll(other), ([, literal = ""]) => ({ path, code: "", message: textOf(literal) }))
])

describe("the message of a refusal", () => {
  it("says in one or two plain sentences what to do", () => {
    assert.isAtLeast(messages.length, 100)
    const wrong = messages.flatMap(({ path, message }) => {
      const fault = messageFault(message)
      return fault === undefined ? [] : [`${path}: ${message} (${fault})`]
    })
    assert.deepStrictEqual(wrong, [])
  })

  /** Documented for clients, but nothing is refused with it now: there are codes that say more. */
  const general: ReadonlyArray<string> = ["CONFLICT"]

  it.each(Object.keys(statuses).filter((code) => !general.includes(code)))("%s is given by the code", (code) => {
    const places = sources.filter(
      ({ path, text }) => path !== "contract/api/ErrorCode.ts" && text.includes(`"${code}"`)
    )
    const refusing = places.filter(({ text }) => /\b(?:refuse|reject|refusalOf)\b/.test(text))
    assert.isNotEmpty(refusing.map(({ path }) => path))
  })

  it("has no more of an unknown id than its beginning", () => {
    const { message } = refuseUnknownId("product", `${"😀".repeat(40)}${"x".repeat(10_000)}`)
    assert.isBelow(message.length, 200)
    assert.isTrue(message.isWellFormed())
    assert.isUndefined(messageFault(message))
    assert.strictEqual(
      refuseUnknownId("order", "ord_1").message,
      "No order has the id ord_1: use the id of an existing order."
    )
  })

  it("has one line, whatever the id", () => {
    const { message } = refuseUnknownId("product", "a\r\nb\u0000c\u2028d")
    assert.strictEqual(
      message,
      "No product has the id a\uFFFD\uFFFDb\uFFFDc\uFFFDd: use the id of an existing product."
    )
  })

  it("names the runtime operation if its name is sent as the id of a license", () => {
    // Not "devices": the management API has a path with that name, too.
    const verbs = operations.flatMap(({ path }) => /^\/api\/v1\/license\/(?!devices)(\w+)/.exec(path)?.[1] ?? [])
    assert.isAtLeast(verbs.length, 9)
    for (const verb of verbs) {
      const { detail, message } = refuseUnknownLicense(verb)
      assert.include(message, `: applications use POST /api/v1/license/${verb}`)
      assert.isUndefined(messageFault(message))
      assert.strictEqual(detail, "id")
    }
    assert.notInclude(refuseUnknownLicense("constructor").message, "applications")
  })
})
