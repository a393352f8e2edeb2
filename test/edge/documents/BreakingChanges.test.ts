/** The contract breaks no client of the last release; the comparison finds every kind of breaking change. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { openApiDocument } from "../../../src/edge/documents/Document.ts"
import { breakingChanges, type Document } from "./breaking/BreakingChanges.ts"

const released = fileURLToPath(new URL("../../../schema/released/openapi.json", import.meta.url))

type Keys = ReadonlyArray<string | number>

/** A change of one place of the contract: undefined removes the member. */
type Change = readonly [place: Keys, value: (before: never) => unknown]

const removed = () => undefined
const to = (value: unknown) => () => value
const without = (item: unknown) => (list: ReadonlyArray<unknown>) => list.filter((each) => each !== item)
const and =
  (...items: ReadonlyArray<unknown>) =>
  (list: ReadonlyArray<unknown>) => [...list, ...items]

const text = JSON.stringify(openApiDocument())
const copy = (): Document => JSON.parse(text)
const current = copy()

/** The contract with changes. */
const changed = (changes: ReadonlyArray<Change>): Document => {
  const document = copy()
  for (const [place, value] of changes) {
    const within = place
      .slice(0, -1)
      .reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document) as Record<string, unknown>
    const last = place.at(-1)!
    const after = value(within[last] as never)
    if (after === undefined) delete within[last]
    else within[last] = after
  }
  return document
}

const schema = (name: string, ...rest: Keys): Keys => ["components", "schemas", name, ...rest]
const field = (name: string, property: string, ...rest: Keys) => schema(name, "properties", property, ...rest)
const me: Keys = ["paths", "/api/v1/me", "get"]
const list: Keys = ["paths", "/api/v1/products", "get"]
const created: Keys = ["paths", "/api/v1/products", "post", "responses"]

it("The contract breaks no client of the released document", () => {
  const document = JSON.parse(readFileSync(released, "utf8")) as Document
  const found = breakingChanges({ old: document, new: current })
  const howTo =
    "A client of the released version would fail. Keep what it uses; CONTRIBUTING.md, Releasing, has the rest."
  assert.deepStrictEqual(found, [], howTo)
})

const anyText = { type: "string" }

/** Breaking changes of the contract, and where the comparison must find each. */
const breaking: ReadonlyArray<readonly [name: string, at: RegExp, ...changes: ReadonlyArray<Change>]> = [
  ["a removed operation", /^GET \/api\/v1\/me: was removed$/, [me, removed]],
  ["another operationId", /^GET \/api\/v1\/me: operationId became who$/, [[...me, "operationId"], to("who")]],
  [
    "a removed parameter",
    /GET \/api\/v1\/products: query limit: was removed/,
    [[...list, "parameters"], (all: ReadonlyArray<unknown>) => all.slice(1)]
  ],
  ["a required parameter", /query limit is now required/, [[...list, "parameters", 0, "required"], to(true)]],
  [
    "a parameter of another type",
    /query limit: the type integer became boolean/,
    [[...list, "parameters", 0, "schema"], to({ type: "boolean" })]
  ],
  ["another scope", /needs the scope ops:read/, [[...list, "x-required-scopes"], and("ops:read")]],
  [
    "another credential",
    /takes another credential/,
    [["paths", "/api/v1/license/check", "post", "security"], to([{ ApiToken: [] }])]
  ],
  [
    "a field of a request that is now required",
    /body\.metadata: is now required/,
    [schema("ProductCreateRequest", "required"), and("metadata")]
  ],
  ["a removed field of a request", /body\.metadata: was removed/, [field("ProductCreateRequest", "metadata"), removed]],
  [
    "an enumeration of requests with a value less",
    /body\.license_type: consumption is no longer accepted/,
    [schema("LicenseType", "enum"), without("consumption")]
  ],
  [
    "a tighter limit",
    /body\.name: maxLength 255 became 100/,
    [field("ProductCreateRequest", "name", "maxLength"), to(100)]
  ],
  ["another pattern", /body\.code: pattern/, [field("ProductCreateRequest", "code", "pattern"), to("^[a-z]+$")]],
  [
    "an alternative of a request that is gone",
    /body\.customer_name: alternative 2 is no longer accepted/,
    [field("LicenseUpdateRequest", "customer_name"), to(anyText)]
  ],
  ["a removed field of a response", /: 20\d\.data(\[\])?\.code: was removed/, [field("Product", "code"), removed]],
  [
    "a field that is no longer in every response",
    /data(\[\])?\.code: is no longer in every response/,
    [schema("Product", "required"), without("code")]
  ],
  [
    "a field of a response of another type",
    /data(\[\])?\.max_activations: the type integer became string/,
    [field("Policy", "max_activations", "type"), to("string")]
  ],
  [
    "a field of a response that may now be null",
    /data(\[\])?\.name: alternative 2 is new in a response/,
    [field("Product", "name"), to({ anyOf: [anyText, { type: "null" }] })]
  ],
  [
    "a new value in an enumeration of responses",
    /status: lost is new in a response/,
    [schema("DeviceStatus", "enum"), and("lost")]
  ],
  ["another successful status", /POST \/api\/v1\/products: 201: was removed/, [[...created, 201], removed]],
  [
    "a removed response header",
    /200 has no header X-Request-Id/,
    [[...me, "responses", 200, "headers", "X-Request-Id"], removed]
  ],
  ["errors without a message", /: 4\d\d\.error\.message: was removed/, [field("ErrorObject", "message"), removed]],
  ["a removed event", /^POST license\.created: was removed$/, [["webhooks", "license.created"], removed]],
  [
    "deliveries without a field",
    /^POST \w+\.\w+\.created_at: was removed$/,
    [field("WebhookEvent", "created_at"), removed]
  ],
  [
    "another scheme",
    /^ApiToken: scheme became basic$/,
    [["components", "securitySchemes", "ApiToken", "scheme"], to("basic")]
  ]
]

/** Changes that clients do not notice. */
const harmless: ReadonlyArray<readonly [name: string, ...changes: ReadonlyArray<Change>]> = [
  ["a new operation", [["paths", "/api/v1/you"], to({})]],
  [
    "a new optional parameter",
    [[...list, "parameters"], and({ name: "colour", in: "query", required: false, schema: anyText })]
  ],
  [
    "a new field of responses",
    [field("Product", "colour"), to(anyText)],
    [schema("Product", "required"), and("colour")]
  ],
  ["a new optional field of requests", [field("ProductCreateRequest", "colour"), to(anyText)]],
  ["a wider limit", [field("ProductCreateRequest", "name", "maxLength"), to(500)]],
  ["a refusal that cannot happen any more", [[...me, "responses", 429], removed]],
  ["other words", [["info", "description"], to("Other words.")]]
]

describe("The comparison of contracts", () => {
  for (const [name, at, ...changes] of breaking) {
    it(`finds ${name}`, () => {
      const found = breakingChanges({ old: current, new: changed(changes) })
      assert.isTrue(
        found.some((line) => at.test(line)),
        `found: ${found.slice(0, 5).join("; ")}`
      )
    })
  }
  for (const [name, ...changes] of harmless) {
    it(`accepts ${name}`, () => {
      assert.deepStrictEqual(breakingChanges({ old: current, new: changed(changes) }), [])
    })
  }
})
