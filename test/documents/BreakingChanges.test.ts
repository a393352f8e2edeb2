/** The contract breaks no client of the last release; the comparison finds every kind of breaking change. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { openApiDocument } from "../../src/documents/Document.ts"
import { breakingChanges, type Document } from "./breaking/BreakingChanges.ts"

const released = fileURLToPath(new URL("../../schema/released/openapi.json", import.meta.url))

/** A copy of the contract, of which a test changes a part. */
// biome-ignore lint/suspicious/noExplicitAny: a change may be anywhere in the document
const copy = (): any => JSON.parse(JSON.stringify(openApiDocument()))

const current: Document = copy()

it("The contract breaks no client of the released document", () => {
  const document = JSON.parse(readFileSync(released, "utf8")) as Document
  const found = breakingChanges({ old: document, new: current })
  const howTo =
    "A client of the released version would fail. Keep what it uses; CONTRIBUTING.md, Releasing, has the rest."
  assert.deepStrictEqual(found, [], howTo)
})

/** A breaking change of the contract, and where the comparison must find it. */
const breaking: ReadonlyArray<
  readonly [name: string, change: (contract: ReturnType<typeof copy>) => void, at: RegExp]
> = [
  ["a removed operation", ({ paths }) => delete paths["/api/v1/me"], /^GET \/api\/v1\/me: was removed$/],
  [
    "another operationId",
    ({ paths }) => {
      paths["/api/v1/me"].get.operationId = "whoAmI"
    },
    /^GET \/api\/v1\/me: operationId became whoAmI$/
  ],
  [
    "a removed parameter",
    ({ paths }) => paths["/api/v1/products"].get.parameters.shift(),
    /GET \/api\/v1\/products: query limit: was removed/
  ],
  [
    "a parameter that is now required",
    ({ paths }) => {
      paths["/api/v1/products"].get.parameters[0].required = true
    },
    /query limit is now required/
  ],
  [
    "a parameter of another type",
    ({ paths }) => {
      paths["/api/v1/products"].get.parameters[0].schema = { type: "boolean" }
    },
    /query limit: the type integer became boolean/
  ],
  [
    "another scope",
    ({ paths }) => paths["/api/v1/products"].get["x-required-scopes"].push("ops:read"),
    /needs the scope ops:read/
  ],
  [
    "another credential",
    ({ paths }) => {
      paths["/api/v1/license/check"].post.security = [{ ApiToken: [] }]
    },
    /takes another credential/
  ],
  [
    "a field of a request that is now required",
    ({ components }) => components.schemas.ProductCreateRequest.required.push("metadata"),
    /body\.metadata: is now required/
  ],
  [
    "a removed field of a request",
    ({ components }) => delete components.schemas.ProductCreateRequest.properties.metadata,
    /body\.metadata: was removed/
  ],
  [
    "an enumeration of requests with a value less",
    ({ components }) => components.schemas.LicenseType.enum.pop(),
    /body\.license_type: consumption is no longer accepted/
  ],
  [
    "a tighter limit",
    ({ components }) => {
      components.schemas.ProductCreateRequest.properties.name.maxLength = 100
    },
    /body\.name: maxLength 255 became 100/
  ],
  [
    "another pattern",
    ({ components }) => {
      components.schemas.ProductCreateRequest.properties.code.pattern = "^[a-z]+$"
    },
    /body\.code: pattern/
  ],
  [
    "an alternative of a request that is gone",
    ({ components }) => {
      components.schemas.LicenseUpdateRequest.properties.customer_name = { type: "string" }
    },
    /body\.customer_name: alternative 2 is no longer accepted/
  ],
  [
    "a removed field of a response",
    ({ components }) => delete components.schemas.Product.properties.code,
    /: 20\d\.data(\[\])?\.code: was removed/
  ],
  [
    "a field that is no longer in every response",
    ({ components }) => components.schemas.Product.required.shift(),
    /is no longer in every response/
  ],
  [
    "a field of a response of another type",
    ({ components }) => {
      components.schemas.Policy.properties.max_activations.type = "string"
    },
    /data(\[\])?\.max_activations: the type integer became string/
  ],
  [
    "a field of a response that may now be null",
    ({ components }) => {
      components.schemas.Product.properties.name = { anyOf: [{ type: "string" }, { type: "null" }] }
    },
    /data(\[\])?\.name: alternative 2 is new in a response/
  ],
  [
    "a new value in an enumeration of responses",
    ({ components }) => components.schemas.DeviceStatus.enum.push("lost"),
    /status: lost is new in a response/
  ],
  [
    "another successful status",
    ({ paths }) => {
      const { responses } = paths["/api/v1/products"].post
      responses[200] = responses[201]
      delete responses[201]
    },
    /POST \/api\/v1\/products: 201: was removed/
  ],
  [
    "a removed response header",
    ({ paths }) => delete paths["/api/v1/me"].get.responses[200].headers["X-Request-Id"],
    /200 has no header X-Request-Id/
  ],
  [
    "errors without a message",
    ({ components }) => delete components.schemas.ErrorObject.properties.message,
    /: 4\d\d\.error\.message: was removed/
  ],
  ["a removed event", ({ webhooks }) => delete webhooks["license.created"], /^POST license\.created: was removed$/],
  [
    "deliveries without the event's type",
    ({ components }) => delete components.schemas.WebhookEvent.properties.created_at,
    /^POST \w+\.\w+\.created_at: was removed$/
  ],
  [
    "another scheme",
    ({ components }) => {
      components.securitySchemes.ApiToken.scheme = "basic"
    },
    /^ApiToken: scheme became basic$/
  ]
]

/** Changes that clients do not notice. */
const harmless: ReadonlyArray<readonly [name: string, change: (contract: ReturnType<typeof copy>) => void]> = [
  [
    "a new operation",
    ({ paths }) => {
      paths["/api/v1/you"] = paths["/api/v1/me"]
    }
  ],
  [
    "a new optional parameter",
    ({ paths }) => paths["/api/v1/me"].get.parameters?.push({ name: "q", in: "query", schema: {} })
  ],
  [
    "a new field of responses",
    ({ components }) => {
      components.schemas.Product.properties.colour = { type: "string" }
      components.schemas.Product.required.push("colour")
    }
  ],
  [
    "a new optional field of requests",
    ({ components }) => {
      components.schemas.ProductCreateRequest.properties.colour = { type: "string" }
    }
  ],
  [
    "a wider limit",
    ({ components }) => {
      components.schemas.ProductCreateRequest.properties.name.maxLength = 500
    }
  ],
  ["a refusal that cannot happen any more", ({ paths }) => delete paths["/api/v1/me"].get.responses[429]],
  ["other words", ({ info }) => Object.assign(info, { description: "Other words." })]
]

describe("The comparison of contracts", () => {
  for (const [name, change, at] of breaking) {
    it(`finds ${name}`, () => {
      const changed = copy()
      change(changed)
      const found = breakingChanges({ old: current, new: changed })
      assert.isTrue(
        found.some((line) => at.test(line)),
        `found: ${found.slice(0, 5).join("; ")}`
      )
    })
  }
  for (const [name, change] of harmless) {
    it(`accepts ${name}`, () => {
      const changed = copy()
      change(changed)
      assert.deepStrictEqual(breakingChanges({ old: current, new: changed }), [])
    })
  }
})
