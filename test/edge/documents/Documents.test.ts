import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import type { OpenApi } from "effect/http-api"
import { statuses } from "../../../src/contract/api/ErrorCode.ts"
import { openApiDocument } from "../../../src/edge/documents/Document.ts"
import { operations } from "../../../src/edge/documents/DocumentedOperations.ts"
import { fieldDescriptions, parameterDescriptions } from "../../../src/edge/documents/FieldDescriptions.ts"
import { documentFiles } from "../../../src/edge/documents/publishing/Documents.ts"
import { eventTypes } from "../../../src/ledger/events/EventType.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const document = openApiDocument()

type Documented = OpenApi.OpenAPISpecOperation & { readonly "x-required-scopes"?: ReadonlyArray<string> }

const documented = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method, operation: operation as Documented }))
)

/** Every object within a value. */
const objectsWithin = (value: unknown): ReadonlyArray<Record<string, unknown>> =>
  typeof value !== "object" || value === null
    ? []
    : [
        ...(Array.isArray(value) ? [] : [value as Record<string, unknown>]),
        ...Object.values(value).flatMap(objectsWithin)
      ]

describe("The committed documents", () => {
  for (const [path, text] of Object.entries(documentFiles())) {
    it(`${path} matches the contract (otherwise run npm run generate)`, () => {
      assert.isTrue(readFileSync(`${root}${path}`, "utf8") === text)
    })
  }
})

describe("The OpenAPI document", () => {
  it("contains every schema that it refers to", () => {
    for (const { $ref } of objectsWithin(document)) {
      if (typeof $ref !== "string") continue
      const target = $ref
        .slice(2)
        .split("/")
        .reduce<unknown>((at, key) => (at as Record<string, unknown>)?.[key], document)
      assert.isDefined(target, $ref)
    }
  })

  it("lists what Range and If-None-Match make of a download", () => {
    const { operation } = documented.find(({ operation }) => operation.operationId === "downloadReportExport")!
    assert.containsAllKeys(operation.responses, ["200", "206", "304"])
  })

  it("contains no generated name", () => {
    assert.notMatch(JSON.stringify(document), /Encoded/)
    for (const name of Object.keys(document.components.schemas)) assert.match(name, /^[A-Z][A-Za-z]+$/)
  })

  it("names the schema of every response, so that clients have one type for it", () => {
    for (const { operation } of documented) {
      for (const [status, { content }] of Object.entries(operation.responses)) {
        const media = content?.["application/json"]
        if (media !== undefined) assert.property(media.schema, "$ref", `${operation.operationId} ${status}`)
      }
    }
  })

  // Generators name the type of such a field after the schema and the field: Go's fails, and Python's leaves the operation out.
  it("has no schema with the name of another one's field", () => {
    const { schemas } = document.components
    const inPascal = (name: string) => name.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
    const found = Object.entries(schemas).flatMap(([owner, { properties = {} }]) =>
      Object.entries(properties as Record<string, object>)
        .filter(([, field]) => "enum" in field || "properties" in field)
        .map(([name]) => owner + inPascal(name))
        .filter((name) => name in schemas)
    )
    assert.deepStrictEqual(found, [])
  })

  it("describes every operation, parameter and field, and those by a name only if several have it", () => {
    const used = new Map<string, number>()
    const use = (name: string) => used.set(name, (used.get(name) ?? 0) + 1)
    for (const { operation } of documented) {
      assert.isNotEmpty(operation.description, operation.operationId)
      assert.notStrictEqual(operation.description, operation.summary, operation.operationId)
      for (const [status, { description }] of Object.entries(operation.responses))
        if (Number(status) < 400) assert.notStrictEqual(description, operation.summary, operation.operationId)
      for (const parameter of operation.parameters ?? []) {
        if ("$ref" in parameter) continue
        assert.isNotEmpty(parameter.description, `${operation.operationId} ${parameter.name}`)
        if (parameter.description === parameterDescriptions[parameter.name]) use(`?${parameter.name}`)
      }
    }
    for (const [owner, schema] of Object.entries(document.components.schemas)) {
      for (const { properties } of objectsWithin(schema)) {
        if (typeof properties !== "object" || properties === null || "type" in properties) continue
        for (const [name, field] of Object.entries(properties as Record<string, Record<string, unknown>>)) {
          const named = typeof field["$ref"] === "string" ? field["$ref"].split("/").at(-1)! : undefined
          const shown = named === undefined ? field : document.components.schemas[named]!
          assert.isNotEmpty(shown["description"], `${owner}.${name}`)
          if (field["description"] === fieldDescriptions[name]) use(name)
        }
      }
    }
    const [fields, parameters] = [fieldDescriptions, parameterDescriptions].map(Object.keys)
    assert.deepStrictEqual(
      fields!.filter((name) => (used.get(name) ?? 0) < 2),
      []
    )
    assert.deepStrictEqual(
      parameters!.filter((name) => !used.has(`?${name}`)),
      []
    )
  })

  it("has a delivery for every type of event", () => {
    const { webhooks } = document as unknown as { readonly webhooks: Record<string, unknown> }
    assert.deepStrictEqual(Object.keys(webhooks), [...eventTypes])
  })

  it("links every new record to the operations that take its id", () => {
    const created = documented.filter(({ operation, path }) => "201" in operation.responses && path.endsWith("s"))
    assert.isAbove(created.length, 10)
    for (const { operation } of created) {
      const { links } = operation.responses[201] as unknown as { readonly links?: Record<string, unknown> }
      if (operation.operationId === "assignLicenseFeature") continue
      assert.isDefined(links, operation.operationId)
    }
  })

  it("forbids unknown members in requests and allows them in responses", () => {
    for (const { operation } of documented) {
      const answers = objectsWithin(operation.responses).concat(referredFrom(operation.responses))
      for (const schema of answers) assert.notStrictEqual(schema["additionalProperties"], false, operation.operationId)
      const body =
        referredFrom(operation.requestBody)[0] ??
        objectsWithin(operation.requestBody).find((schema) => "properties" in schema)
      if (operation.requestBody !== undefined)
        assert.strictEqual(body?.["additionalProperties"], false, operation.operationId)
    }
  })

  it("states summary, tag, credential and scopes of every operation", () => {
    const tags = document.tags.map(({ name }) => name)
    assert.strictEqual(new Set(tags).size, tags.length)
    for (const { path, operation } of documented) {
      const { operationId, security, summary, "x-required-scopes": scopes } = operation
      assert.isNotEmpty(summary, operationId)
      for (const tag of operation.tags) assert.include(tags, tag)
      const names = security.flatMap(Object.keys)
      if (operationId === "startTrial") assert.deepStrictEqual(names, [], operationId)
      else if (path.startsWith("/api/v1/license/")) assert.deepStrictEqual(names, ["LicenseKey"], operationId)
      else if (operation.tags[0] === "system") assert.deepStrictEqual(names, [], operationId)
      else {
        assert.deepStrictEqual(names, ["ApiToken"], operationId)
        if (operationId !== "getMe") assert.isNotEmpty(scopes, operationId)
        assert.isDefined(scopes, operationId)
        if (scopes?.[0] !== "admin") assert.isFalse(scopes?.includes("admin"), operationId)
      }
    }
  })

  it("lists every status with its codes", () => {
    for (const { operation, path } of documented) {
      for (const [status, response] of Object.entries(operation.responses)) {
        if (Number(status) < 400) continue
        const codes = codesIn(response)
        assert.isNotEmpty(codes, `${operation.operationId} ${status}`)
        for (const code of codes) assert.strictEqual(statuses[code as keyof typeof statuses], Number(status))
        assert.strictEqual((response as { description: string }).description, codes.join(", "))
      }
      if (path.startsWith("/api/v1/") && operation.security.length > 0) assert.property(operation.responses, "401")
    }
  })

  it("omits bodies and keys for operations without them", () => {
    const codesOf = (id: string) =>
      Object.values(documented.find(({ operation }) => operation.operationId === id)!.operation.responses).flatMap(
        codesIn
      )
    assert.notIncludeMembers(codesOf("getProduct"), ["INVALID_JSON"])
    for (const code of ["INVALID_JSON", "VALIDATION_ERROR", "UNSUPPORTED_MEDIA_TYPE", "IDEMPOTENCY_KEY_REUSED"]) {
      assert.notInclude(codesOf("getProduct"), code)
    }
    for (const code of ["INVALID_QUERY", "NOT_FOUND"]) assert.notInclude(codesOf("createProduct"), code)
    assert.include(codesOf("suspendLicense"), "INVALID_JSON")
    assert.notInclude(codesOf("deleteProduct"), "INVALID_JSON")
    assert.includeMembers(codesOf("updateProduct"), ["NOT_FOUND", "INVALID_JSON", "VALIDATION_ERROR", "DUPLICATE_CODE"])
  })

  for (const { operation } of documented) {
    const media = operation.requestBody?.content["application/json"] as { readonly example?: unknown } | undefined
    if (media === undefined) continue
    it(`the example of ${operation.operationId} is a valid body`, () => {
      const payload = operations().get(operation.operationId)!.endpoint.payload.get("application/json")
      assert.isTrue(payload !== undefined && "schemas" in payload)
      const schema = Schema.Union((payload as { readonly schemas: ReadonlyArray<Schema.Codec<unknown>> }).schemas)
      const decoded = Effect.runSyncExit(
        Schema.decodeUnknownEffect(schema)(media.example, { onExcessProperty: "error" })
      )
      assert.isTrue(Exit.isSuccess(decoded), String(decoded))
    })
  }
})

const codesIn = (response: unknown): ReadonlyArray<string> =>
  (response as { readonly "x-error-codes"?: ReadonlyArray<string> })["x-error-codes"] ?? []

/** The schemas that a value refers to, directly and indirectly. */
const referredFrom = (value: unknown): ReadonlyArray<Record<string, unknown>> => {
  const schemas = document.components.schemas as Record<string, Record<string, unknown>>
  const names = objectsWithin(value).flatMap(({ $ref }) => (typeof $ref === "string" ? [$ref.split("/").at(-1)!] : []))
  return names.flatMap((name) =>
    name in schemas ? [schemas[name]!, ...objectsWithin(schemas[name]), ...referredFrom(schemas[name])] : []
  )
}
