/**
 * Every block of code in the documents is executed by a test, or excused by name and checked here as far as it can be. A block in
 * neither table fails.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Webhook } from "standardwebhooks"
import { statuses } from "../../src/contract/api/ErrorCode.ts"
import { RefusalFacts } from "../../src/contract/api/RefusalFacts.ts"
import { bodyOf, headersOf } from "../../src/ledger/webhooks/Message.ts"
import { keysOf } from "../../src/ledger/webhooks/Secret.ts"
import { EntitlementPayload } from "../../src/licensing/model/Payloads.ts"
import { commands } from "../../src/tools/cli/Commands.ts"
import { Database } from "../support/database/Database.ts"
import { type Block, blocksOf, pages } from "../support/processes/DocumentBlocks.ts"
import { excused, executed } from "./programs/ExecutedBlocks.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** What cannot be executed everywhere, or changes the machine, is checked. */
const checks: { readonly [language: string]: (block: Block) => void } = {
  json: (block) => checkJson(block),
  sh: (block) => checkShell(block),
  swift: (block) => checkSwift(block),
  "": () => {}
}

/** The blocks of a page by their names in the tables. */
const named = (blocks: ReadonlyArray<Block>): ReadonlyArray<readonly [name: string, block: Block]> => {
  const counts = new Map<string, number>()
  return blocks.map((block) => {
    const name = `${block.heading}: ${block.language}`
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    return [count === 1 ? name : `${name} #${count}`, block]
  })
}

describe("The documents' blocks of code", () => {
  for (const page of pages) {
    for (const [name, block] of named(blocksOf(page))) {
      const test = executed[page]?.[name]
      it(`${page}, ${name} is ${test === undefined ? "checked" : "executed"}`, () => {
        const excuse = excused[page]?.[name]
        assert.isTrue((test === undefined) !== (excuse === undefined), "needs one line: executed by a test, or excused")
        if (test !== undefined) return assert.isTrue(existsSync(`${root}/${test}`))
        const check = checks[block.language]
        assert.isDefined(check, "code of this language cannot be excused")
        check?.(block)
      })
    }
  }

  it("are all there that the tables name", () => {
    for (const table of [executed, excused])
      for (const [page, blocks] of Object.entries(table)) {
        const names = named(blocksOf(page)).map(([name]) => name)
        assert.includeMembers(names, Object.keys(blocks), page)
      }
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

/** The verifier's file has each name that the code uses of it. */
const checkSwift = ({ code }: Block): void => {
  const file = readFileSync(`${root}/docs/clients/Licensing.swift`, "utf8")
  const names = Array.from(code.matchAll(/\b(?:client|answer|DeviceBinding)\.(\w+)/g), ([, name]) => name)
  assert.isAbove(names.length, 5)
  for (const name of names) assert.match(file, new RegExp(`public (static func|func|var|let) ${name}\\b`))
  const labels = Array.from(code.matchAll(/^ {2}(\w+):/gm), ([, label]) => label)
  assert.match(file, new RegExp(`public init\\(${labels.map((label) => `${label}: \\w+`).join(", ")}\\)`))
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
