/** `licensing mcp` as a process, called by the official client. */
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { assert, layer } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import { Effect, Layer } from "effect"
import { Database } from "../../support/database/Database.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { runLine } from "../../support/processes/CommandLine.ts"
import { processEnvironment } from "../../support/processes/Processes.ts"
import { program } from "../../support/processes/Program.ts"

/** A client of a server with this token. */
const connect = (url: string, token: string, ...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.flatMap(program, (main) =>
      Effect.promise(async () => {
        const client = new Client({ name: "test", version: "1" })
        const env = { ...processEnvironment, LICENSING_URL: url, LICENSING_TOKEN: token }
        await client.connect(new StdioClientTransport({ command: process.execPath, args: [main, "mcp", ...args], env }))
        return client
      })
    ),
    (client) => Effect.promise(() => client.close())
  )

const call = (client: Client, name: string, input: Record<string, unknown> = {}) =>
  Effect.promise(async () => {
    const { content, isError } = await client.callTool({ name, arguments: input })
    const [block] = content as ReadonlyArray<{ readonly type: string; readonly text?: string }>
    return { isError: isError === true, text: block?.text ?? "" }
  })

/** Objects with named properties that allow others: nothing that a tool takes does. */
const openObjects = (value: unknown): ReadonlyArray<unknown> => {
  if (typeof value !== "object" || value === null) return []
  const { additionalProperties, properties } = value as Record<string, unknown>
  const isOpen = typeof properties === "object" && "type" in value && additionalProperties !== false
  return [...(isOpen ? [value] : []), ...Object.values(value).flatMap(openObjects)]
}

const toolsOf = (client: Client) => Effect.promise(async () => (await client.listTools()).tools)

layer(TestServer.layerOver().pipe(Layer.provideMerge(Database.layerUrl)), { timeout: 60_000 })(
  "`licensing mcp`",
  (it) => {
    it.effect("sells a license, finds it, diagnoses and revokes it", () =>
      Effect.gen(function* () {
        const { adminToken, baseUrl } = yield* TestServer
        const client = yield* connect(baseUrl, adminToken)
        const data = Effect.fnUntraced(function* (name: string, input: Record<string, unknown>) {
          const { isError, text } = yield* call(client, name, input)
          assert.isFalse(isError, text)
          return JSON.parse(text)
        })
        const product = yield* data("createProduct", { body: { name: "Editor", code: "mcp-editor" } })
        const policy = yield* data("createPolicy", {
          id: product.id,
          body: { name: "One", code: "one", license_type: "perpetual" }
        })
        const body = { product_id: product.id, policy_id: policy.id, metadata: { crm: "a/b&c" } }
        const { license, license_key } = yield* data("createLicense", { body })
        assert.isString(license_key)

        const found = yield* data("listLicenses", { metadata: { crm: "a/b&c" }, limit: 5 })
        assert.deepStrictEqual(
          found.data.map(({ id }: { readonly id: string }) => id),
          [license.id]
        )
        const diagnosed = yield* data("diagnoseLicense", { id: license.id, body: { fingerprint: "a laptop" } })
        assert.isBoolean(diagnosed.admitted)
        assert.strictEqual((yield* data("revokeLicense", { id: license.id })).status, "revoked")

        const many = { action: "suspend", filter: { product_id: product.id }, reason: "Not paid" }
        const { isError: isUntried, text: untried } = yield* call(client, "createBulkJob", { body: many })
        assert.isTrue(isUntried)
        assert.match(untried, /dry_run: true first/)
        assert.isTrue((yield* data("createBulkJob", { body: { ...many, dry_run: true } })).dry_run)
        assert.isTrue((yield* call(client, "createBulkJob", { body: { ...many, action: "revoke" } })).isError)
        assert.isFalse((yield* data("createBulkJob", { body: many })).dry_run)
        assert.match((yield* call(client, "createBulkJob", { body: many })).text, /dry_run: true first/)

        const refused = yield* call(client, "getLicense", { id: "lic_../../products" })
        assert.isTrue(refused.isError)
        assert.match(refused.text, /^NOT_FOUND: /)
        assert.match((yield* call(client, "getLicense", { id: ".." })).text, /^id is no id/)
        const misspelt = yield* call(client, "listLicenses", { stauts: "active" })
        assert.isTrue(misspelt.isError)
        assert.match(misspelt.text, /^listLicenses does not take stauts\..*\bstatus\b/)
        const beside = { id: license.id, body: {}, expires_at: "2040-01-01T00:00:00Z" }
        assert.match((yield* call(client, "updateLicense", beside)).text, /does not take expires_at\..*body/)
        assert.match((yield* call(client, "getLicense")).text, /^getLicense needs id\. .*id \(required\)/)
        assert.match((yield* call(client, "createLicense")).text, /^createLicense needs body\. /)
        const invalid = yield* call(client, "createProduct", { body: { name: "Without a code" } })
        assert.isTrue(invalid.isError)
        assert.match(invalid.text, /^VALIDATION_ERROR: .*code/)
      }).pipe(Effect.scoped)
    )

    it.effect("offers what the token may do, and marks what is destructive", () =>
      Effect.gen(function* () {
        const { adminToken, baseUrl, client: management } = yield* TestServer
        const { token } = yield* management["api-keys"].create({
          payload: { name: "support", scopes: ["license:read", "device:write"] }
        })
        const support = yield* toolsOf(yield* connect(baseUrl, token))
        const names = support.map(({ name }) => name)
        assert.includeMembers(names, ["getMe", "getLicense", "diagnoseLicense", "resetDevice"])
        for (const name of ["createLicense", "revokeLicense", "listApiKeys", "createProduct"])
          assert.notInclude(names, name)

        const { id } = yield* management.products.create({ payload: { name: "Viewer", code: "mcp-viewer" } })
        const { token: limited } = yield* management["api-keys"].create({
          payload: {
            name: "reseller",
            scopes: ["product:read", "product:write", "license:read", "ops:read"],
            product_ids: [id]
          }
        })
        const ofReseller = (yield* toolsOf(yield* connect(baseUrl, limited))).map(({ name }) => name)
        assert.includeMembers(ofReseller, ["getMe", "listProducts", "getProduct", "createPolicy", "listLicenses"])
        for (const name of ["createProduct", "getOpsSummary", "getOpsNodes", "getOpsErrors"])
          assert.notInclude(ofReseller, name)

        const all = yield* toolsOf(yield* connect(baseUrl, adminToken))
        const hints = new Map(all.map(({ annotations, name }) => [name, annotations]))
        const destructive = [...hints].filter(([, hint]) => hint?.destructiveHint).map(([name]) => name)
        assert.includeMembers(destructive, ["deleteProduct", "revokeLicense", "rotateLicenseKey", "updateLicense"])
        assert.includeMembers(destructive, ["assignLicenseFeature", "createApiKey"])
        for (const name of ["createLicense", "listLicenses", "diagnoseLicense"]) assert.notInclude(destructive, name)
        assert.isTrue(hints.get("diagnoseLicense")?.readOnlyHint)
        assert.isFalse(hints.get("createLicense")?.readOnlyHint)
        for (const { inputSchema, name } of all) assert.deepStrictEqual(openObjects(inputSchema), [], name)
        // Schemas stand alone: a client validates them without the document.
        for (const { inputSchema } of all) {
          const text = JSON.stringify(inputSchema)
          for (const [, name = ""] of text.matchAll(/"\$ref":"([^"]*)"/g)) {
            assert.isTrue(name.startsWith("#/$defs/"))
            assert.property(inputSchema.$defs, name.slice("#/$defs/".length))
          }
        }

        const reading = yield* toolsOf(yield* connect(baseUrl, adminToken, "--read-only", "--groups", "licenses"))
        assert.include(
          reading.map(({ name }) => name),
          "listLicenses"
        )
        assert.isTrue(reading.every(({ annotations }) => annotations?.readOnlyHint))
        assert.isBelow(reading.length, all.length / 5)
      }).pipe(Effect.scoped)
    )

    it.effect("starts as the guide configures it", () =>
      Effect.gen(function* () {
        const { adminToken, baseUrl } = yield* TestServer
        const page = "docs/guides/assistant.md"
        const [, code = assert.fail(page)] = readFileSync(page, "utf8").match(/```json\n([\s\S]*?)```/) ?? []
        const { args, command } = JSON.parse(code).mcpServers.licensing
        assert.deepStrictEqual([command, args[0]], ["licensing", "mcp"])
        const tools = yield* toolsOf(yield* connect(baseUrl, adminToken, ...args.slice(1)))
        const names = tools.map(({ name }) => name)
        assert.includeMembers(names, ["listLicenses", "listCustomers", "search"])
      }).pipe(Effect.scoped)
    )

    it.effect("answers a line that is no JSON, and goes on", () =>
      Effect.gen(function* () {
        const { adminToken, baseUrl } = yield* TestServer
        const env = { ...processEnvironment, LICENSING_URL: baseUrl, LICENSING_TOKEN: adminToken }
        const ping = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "ping" })
        const main = yield* program
        const printed = yield* Effect.callback<string>((resume) => {
          const child = execFile(process.execPath, [main, "mcp"], { env }, (error, out) =>
            resume(error === null ? Effect.succeed(out) : Effect.die(error))
          )
          child.stdin?.end(`{"jsonrpc":\n${ping}\n`)
        })
        const answers = printed
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line))
        assert.deepStrictEqual(
          answers.map(({ error, id }) => [id, error?.code]),
          [
            [null, -32_700],
            [7, undefined]
          ]
        )
      })
    )

    it.effect("ends with a sentence if it cannot serve", () =>
      Effect.gen(function* () {
        const { adminToken, baseUrl } = yield* TestServer
        const environment = { LICENSING_URL: baseUrl, LICENSING_TOKEN: adminToken }
        const missing = yield* runLine({ LICENSING_URL: baseUrl }, "mcp")
        assert.strictEqual(missing.code, 2)
        const wrong = yield* runLine({ ...environment, LICENSING_TOKEN: "lsk_wrong" }, "mcp")
        assert.strictEqual(wrong.code, 1)
        assert.notInclude(wrong.out + wrong.error, "lsk_wrong")
        const elsewhere = yield* runLine({ ...environment, LICENSING_URL: "http://127.0.0.1:1" }, "mcp")
        assert.strictEqual(elsewhere.code, 1)
        const group = yield* runLine(environment, "mcp", "--groups", "licences")
        assert.strictEqual(group.code, 1)
        const printed = yield* runLine(environment, "mcp", "--json", "--groups", "devices")
        assert.include(
          JSON.parse(printed.out).map(({ name }: { readonly name: string }) => name),
          "resetDevice"
        )
      })
    )
  }
)
