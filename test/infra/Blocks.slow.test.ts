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

const root = fileURLToPath(new URL("../..", import.meta.url))

const commandsTest = "test/infra/Commands.slow.test.ts"
const deliveries = "test/ledger/webhooks/Documentation.slow.test.ts"
const guides = "test/infra/Guides.slow.test.ts"
const scenarios = "test/infra/Scenarios.slow.test.ts"
const packed = "test/infra/packages/Kit.slow.test.ts"
const verifiers = "test/verifying/Verifiers.slow.test.ts"
const here = "test/infra/Blocks.slow.test.ts"
const states = "test/infra/states.test.ts"

/** The test that executes a block, or generates it and compares; by page, then `heading: language`, a second one with `#2`. */
const executed: { readonly [page: string]: { readonly [block: string]: string } } = {
  "README.md": {
    "Start: sh": commandsTest,
    "The first license: sh": commandsTest,
    "The first license: sh #2": commandsTest,
    "The first license: sh #3": commandsTest,
    "The first license: sh #4": commandsTest
  },
  "docs/OPERATIONS.md": {
    "First checks: sh": guides,
    "Stored data: sql": here,
    "Backup and restore: sh #2": guides,
    "Export and import: sh": guides,
    "When the master key is lost: sql": here
  },
  "docs/STATES.md": { "Licenses: mermaid": states, "Devices: mermaid": states, "Floating leases: mermaid": states },
  "docs/WEBHOOKS.md": {
    "In five minutes: sh": commandsTest,
    "In five minutes: sh #2": commandsTest,
    "TypeScript: ts": deliveries,
    "Python: python": deliveries,
    "Go: go": deliveries,
    "Ruby: ruby": deliveries,
    "Java: java": deliveries,
    "C#: csharp": deliveries,
    "PHP: php": deliveries,
    "Standard Webhooks: ts": here
  },
  "docs/guides/effect-client.md": { "A complete example: ts": packed, "Signed responses: ts": packed },
  "docs/guides/import-csv.md": { "Licenses from a CSV file: sh": guides, "Licenses from a CSV file: csv": guides },
  "docs/guides/kit.md": {
    "Quick start: js": "test/infra/packages/Service.slow.test.ts",
    "Use: ts": packed,
    "Use: ts #2": packed,
    "Quotas: ts": packed,
    "Devices of the license: ts": packed,
    "Stores: ts": packed,
    "Offline: ts": packed
  },
  "docs/guides/testing.md": { "A year in a test: ts": packed, "With a running service: ts": packed },
  "docs/guides/personal-data.md": { "Erasing a customer's personal data: sh": guides },
  "docs/guides/scenarios.md": {
    "Seven ways to sell: ts": scenarios,
    "Node-locked, with a trial: ts": scenarios,
    "Floating, with sleeping laptops: ts": scenarios,
    "AI credits by the month, with overage billed: ts": scenarios,
    "Perpetual, with maintenance: ts": scenarios,
    "Air-gapped: ts": scenarios,
    "Containers: ts": scenarios,
    "Subscription: ts": scenarios
  },
  "docs/guides/stripe.md": { "The program: ts": "test/clients/client/Stripe.slow.test.ts" },
  "docs/clients/README.md": { "How they are checked: sh": verifiers },
  "docs/clients/cpp.md": { "Quick start: sh": verifiers, "Quick start: cpp": verifiers },
  "docs/clients/go.md": { "Quick start: sh": verifiers, "Quick start: go": verifiers },
  "docs/clients/java.md": { "Quick start: sh": verifiers, "Quick start: java": verifiers },
  "docs/clients/python.md": { "Quick start: sh": verifiers, "Quick start: python": verifiers }
}

const printed = "What a program prints."
const formula = "A form, not code."
const shape = "JSON: it has the contract's shape."
const long = "Maintainers' commands that take minutes to hours; .ci/run executes the short ones."

/** The blocks that are only checked, each with the reason. */
const excused: typeof executed = {
  "README.md": { "Start: ": printed, "Start: sh #2": "All quick tests, which .ci/run executes." },
  "docs/API.md": { "Errors: json": shape, "Runtime operations: json": shape, "Signed responses: json": shape },
  "docs/CONSOLE.md": {
    "Working on it: sh": "A development server on a fixed port; test/clients/console builds the same sources."
  },
  "docs/DEPLOYMENT.md": {
    "The package: sh": "npm install loads packages; test/infra/packages/Service.slow.test.ts starts the service.",
    "The package: sh #2": "npm install loads packages; test/infra/packages/Service.slow.test.ts starts the service.",
    "The image: sh": "Needs Docker.",
    "Compose: sh": "Needs Docker.",
    "Kubernetes: sh": "Needs a cluster.",
    "systemd: sh": "Installs a service on the machine.",
    "systemd: sh #2": "Needs systemd and the installed service."
  },
  "docs/OPERATIONS.md": {
    "Backup and restore: sh": "Needs PostgreSQL's tools in the server's version.",
    "Failover: ": formula
  },
  "docs/TESTING.md": {
    "Testing: sh": long,
    "The document and the service: sh": "Installs Schemathesis; takes ten minutes.",
    "The document and the service: sh #2": "Installs the linters.",
    "The fuzz test: sh": long,
    "The simulator: sh": long
  },
  "docs/WEBHOOKS.md": { "A delivery: json": shape, "Verifying: ": formula },
  "docs/guides/console-sign-in.md": {
    "What the provider has to do: ":
      "Settings for a provider of the reader's; test/clients/console/tasks/SignIn.slow.test.ts has one of its own.",
    "Microsoft Entra ID: ": "Needs an account there.",
    "Auth0: ": "Needs an account there."
  },
  "docs/guides/customer-page.md": {
    "The customer's page: ": "Settings; test/clients/portal starts a service with its own."
  },
  "docs/guides/effect-client.md": {
    "The typed client: sh": "npm install loads packages; test/infra/packages/Kit.slow.test.ts packs."
  },
  "docs/guides/scenarios.md": {
    "Seven ways to sell: sh": "Runs one of the programs, as test/infra/Scenarios.slow.test.ts does."
  },
  "docs/guides/from-keygen.md": {
    "Moving from Keygen: sh": "Needs an account at Keygen; test/tools/transfer imports from a copy of its API."
  },
  "docs/guides/from-other-services.md": {
    "Moving from Cryptlex or LicenseSpring: sh":
      "Needs an account there; test/tools/transfer imports lists in the shape of their APIs."
  },
  "docs/guides/kit.md": {
    "The application kit: sh": "npm install loads packages; test/infra/packages/Kit.slow.test.ts packs.",
    "Quick start: sh": "npm install loads packages; test/infra/packages/Service.slow.test.ts runs the program."
  },
  "docs/guides/generated-clients.md": { "Generated clients: sh": "Loads the generators." },
  "docs/guides/mail.md": {
    "Switching it on: sh": "Needs a mail server; test/ledger/mail has one of its own.",
    "Templates: ": "Lines of a template."
  },
  "docs/guides/tour.md": { "The tour: sh": ".ci/run executes the first two." }
}

/** What cannot be executed everywhere, or changes the machine, is checked. */
const checks: { readonly [language: string]: (block: Block) => void } = {
  json: (block) => checkJson(block),
  sh: (block) => checkShell(block),
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
