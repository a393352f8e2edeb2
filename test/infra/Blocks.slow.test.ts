/**
 * Every block of code in the documents is executed by a test, or checked here as far as it can be; docs/TESTING.md says which. A block of
 * a kind that this list does not know fails.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Webhook } from "standardwebhooks"
import { statuses } from "../../src/api/ErrorCode.ts"
import { RefusalFacts } from "../../src/api/RefusalFacts.ts"
import { commands } from "../../src/cli/Commands.ts"
import { EntitlementPayload } from "../../src/licenses/model/Payloads.ts"
import { bodyOf, headersOf } from "../../src/webhooks/Message.ts"
import { keysOf } from "../../src/webhooks/Secret.ts"
import { Database } from "../support/Database.ts"
import { type Block, blocksOf, pages } from "../support/DocumentBlocks.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const all = pages.flatMap(blocksOf)

/** `page language` of what other tests execute, with that test. */
const executed: { readonly [kind: string]: string } = {
  "README.md sh": "test/infra/Commands.slow.test.ts",
  "docs/WEBHOOKS.md sh": "test/infra/Commands.slow.test.ts",
  "docs/WEBHOOKS.md ts": "test/webhooks/Documentation.slow.test.ts",
  "docs/WEBHOOKS.md python": "test/webhooks/Documentation.slow.test.ts",
  "docs/WEBHOOKS.md go": "test/webhooks/Documentation.slow.test.ts",
  "docs/WEBHOOKS.md ruby": "test/webhooks/Documentation.slow.test.ts",
  "docs/WEBHOOKS.md java": "test/webhooks/Documentation.slow.test.ts",
  "docs/WEBHOOKS.md csharp": "test/webhooks/Documentation.slow.test.ts",
  "docs/WEBHOOKS.md php": "test/webhooks/Documentation.slow.test.ts",
  "docs/guides/kit.md ts": "test/infra/Package.slow.test.ts",
  "docs/guides/stripe.md ts": "test/client/Stripe.slow.test.ts",
  "docs/guides/effect-client.md ts": "test/infra/Package.slow.test.ts",
  "docs/verifying/README.md sh": "test/verifying/Verifiers.slow.test.ts",
  // Below.
  "docs/OPERATIONS.md sql": "test/infra/Blocks.slow.test.ts",
  // Generated from the rules, compared by:
  "docs/STATES.md mermaid": "test/infra/states.test.ts"
}

/** What cannot be executed everywhere, or changes the machine, is checked. */
const checks: { readonly [language: string]: (block: Block) => void } = {
  json: (block) => checkJson(block),
  sh: (block) => checkShell(block),
  csv: ({ code }) => {
    const rows = code.trim().split("\n")
    const [header, ...lines] = rows.map((row) => row.replaceAll(/"[^"]*"/g, "").split(",").length)
    assert.isNotEmpty(lines)
    for (const columns of lines) assert.strictEqual(columns, header)
  },
  // What a program prints, and formulas.
  "": () => {}
}

describe("The documents' blocks of code", () => {
  for (const block of all) {
    const kind = `${block.page} ${block.language}`
    const test = executed[kind]
    it(`${kind} (${block.heading}) is ${test === undefined ? "checked" : "executed"}`, () => {
      if (test !== undefined) return assert.isTrue(existsSync(`${root}/${test}`))
      const check = checks[block.language]
      assert.isDefined(check, `Nothing tests ${kind}: execute it, or check it here`)
      check?.(block)
    })
  }

  it("has no kind that no block needs any more", () => {
    const kinds = new Set(all.map(({ language, page }) => `${page} ${language}`))
    assert.deepStrictEqual(
      Object.keys(executed).filter((kind) => !kinds.has(kind)),
      []
    )
  })
})

const { scripts } = JSON.parse(readFileSync(`${root}/package.json`, "utf8")) as {
  readonly scripts: Record<string, string>
}
const commandNames = commands.map(({ name }) => name)

/** The shell can parse it, and its scripts, files and commands of the project exist. */
const checkShell = ({ code, page }: Block): void => {
  const { status, stderr } = spawnSync("bash", ["-n"], { input: code.replaceAll("…", "x"), encoding: "utf8" })
  assert.strictEqual(status, 0, stderr)
  for (const [, script = ""] of code.matchAll(/npm run ([\w:]+)/g)) assert.property(scripts, script)
  for (const [path] of code.matchAll(/(?<![\w./:-])(?:infra|docs|src|schema|test)\/[\w./-]*\w/g)) {
    assert.isTrue(existsSync(`${root}/${path}`), `${page} names ${path}`)
  }
  for (const [, command = ""] of code.matchAll(/(?:src\/main\.ts|infra\/licensing) ([a-z][\w-]*)/g))
    assert.include([...commandNames, "serve"], command)
}

/** JSON examples have the shapes of the contract. */
const checkJson = ({ code, page }: Block): void =>
  page === "docs/WEBHOOKS.md" ? checkEvent(JSON.parse(code)) : checkEnvelope(JSON.parse(code))

const checkEnvelope = (value: Record<string, never>): void => {
  assert.property(value, "meta")
  if ("error" in value) {
    const { code: errorCode, detail: _, message, ...facts } = value["error"] as Record<string, string>
    assert.property(statuses, String(errorCode))
    assert.isString(message)
    Schema.decodeUnknownSync(RefusalFacts)(facts, { onExcessProperty: "error" })
    return
  }
  Schema.decodeUnknownSync(EntitlementPayload)(value["data"], { onExcessProperty: "error" })
}

/** The bytes that the service would send for this event have the same members. */
const checkEvent = (event: unknown): void => {
  const { created_at, data, sequence, type } = event as {
    readonly created_at: string
    readonly data: Omit<Parameters<typeof bodyOf>[0], "sequence" | "event_type" | "created_at">
    readonly sequence: number
    readonly type: string
  }
  const sent = bodyOf({ ...data, sequence, event_type: type, created_at: Date.parse(created_at) })
  assert.deepStrictEqual(JSON.parse(Buffer.from(sent).toString()), event)
}

describe("docs/WEBHOOKS.md, Standard Webhooks", () => {
  it("verifies a delivery with their library", () => {
    const block = blocksOf("docs/WEBHOOKS.md").find(
      ({ heading, language }) => heading === "Standard Webhooks" && language === "ts"
    )
    const code = block?.code.replace(/^import .*$/m, "") ?? assert.fail("no block")
    const verify = new Function("Webhook", "secret", "headers", "body", code)
    const secret = `whsec_${Buffer.alloc(32, 5).toString("base64")}`
    const body = Buffer.from("{}")
    const headers = headersOf(
      { event_type: "license.created", sequence: 1 },
      "dlv_1",
      body,
      [keysOf(secret)],
      Math.floor(Date.now() / 1_000)
    )
    verify(Webhook, secret, headers, body.toString())
    assert.throws(() => verify(Webhook, secret, headers, "{ }"))
  })
})

layer(Database.layer)("docs/OPERATIONS.md", (it) => {
  it.effect("has statements that PostgreSQL executes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [create, lost] = blocksOf("docs/OPERATIONS.md").filter(({ language }) => language === "sql")
      // Roles and databases belong to the whole server: names of their own.
      const own = `documented_${process.pid}`
      const statements = (code = "") =>
        code
          .replaceAll(/\blicensing\b/g, own)
          .split(";\n")
          .map((text) => text.trim())
          .filter(Boolean)
      for (const statement of statements(create?.code)) yield* sql.unsafe(statement)
      yield* sql.unsafe(`DROP DATABASE ${own}`)
      yield* sql.unsafe(`DROP ROLE ${own}`)
      const changes = statements(lost?.code).filter((statement) => !/^(BEGIN|COMMIT)/.test(statement))
      assert.isAbove(changes.length, 1)
      for (const statement of changes) yield* sql.unsafe(statement)
    })
  )
})
