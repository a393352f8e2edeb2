/**
 * Tokens for some products: every operation with a token for one product, on records of that product and of another one.
 * An operation without a line in `ProductCases.ts` fails.
 */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ManagementScope } from "../../src/access/Scope.ts"
import { namingFields } from "../../src/edge/requests/ProductGuard.ts"
import { type Answer, assertRefused } from "../support/http/Http.ts"
import { Conversation, operationOf } from "./cases/Conversation.ts"
import { bodyOf, type Fixture, Fixtures, layerContract, paramsOf, requestOf } from "./cases/Fixtures.ts"
import { acceptedWith, idFieldsOf, withId } from "./cases/IdFields.ts"
import { type Case, cases } from "./cases/ProductCases.ts"
import { type Operation, operations } from "./cases/Surface.ts"

const management = operations.filter(({ credential }) => credential === "token")
const inCase = (...kinds: ReadonlyArray<Case>) => management.filter(({ id }) => kinds.includes(cases[id]!))

describe("Operations with a token for some products", () => {
  it("all have a case in ProductCases.ts", () => {
    assert.sameMembers(
      Object.keys(cases),
      management.map(({ id }) => id)
    )
  })

  it("are published with whether such a token can call them", () => {
    for (const { id, publishedReach } of inCase("record", "made", "list", "report", "open"))
      assert.isTrue(publishedReach, id)
    for (const { id, publishedReach } of inCase("hidden", "forbidden")) assert.isFalse(publishedReach, id)
  })

  it("take no id of a record that the guard does not know", () => {
    // Ids that name no record of a product, or a device of the license in the path.
    const others = ["event_id", "external_id", "container_id", "cluster_id", "request_id", "device_id"]
    const unknown = management.flatMap(({ body, id }) =>
      body === undefined
        ? []
        : idFieldsOf(body)
            .filter((field) => !(field in namingFields) && !others.includes(field))
            .map((field) => `${id}: ${field}`)
    )
    assert.deepStrictEqual(unknown, [], "add the field to namingFields in ProductGuard.ts, or to the list above")
  })
})

/** One resource of every kind, in a new product. The customer has the license. */
const makeLinked = Effect.gen(function* () {
  const fixture = yield* (yield* Fixtures).make
  const { customers, licenses } = fixture.ids
  const { data } = yield* Conversation
  yield* data("transferLicense", { params: { id: licenses! }, body: { customer_id: customers } })
  const consume = operationOf("consumeLicense")
  yield* data(consume.id, { ...requestOf(consume, fixture), body: bodyOf(consume, fixture) })
  return fixture
})

const scopes = ManagementScope.literals.filter((scope) => scope !== "admin")

/** A token for the products of some fixtures. */
const tokenFor = Effect.fnUntraced(function* (...fixtures: ReadonlyArray<Fixture>) {
  const { token } = yield* (yield* Conversation).data<{ readonly token: string }>("createApiKey", {
    body: { name: "limited", scopes, product_ids: [...new Set(fixtures.map(({ ids }) => ids["products"]!))] }
  })
  return `Bearer ${token}`
})

const withBody = (operation: Operation, fixture: Fixture) =>
  operation.body === undefined ? {} : { body: bodyOf(operation, fixture) }

/** No id of the other product's records may be in an answer, unless the request had it. */
const assertOwn = ({ text }: Answer, { ids, licenseKey }: Fixture, shown: string) => {
  for (const [kind, id] of Object.entries(ids)) if (kind !== "webhooks") assert.notInclude(text, id, `${shown} ${kind}`)
  assert.notInclude(text, licenseKey, shown)
}

/** Requests that must precede, and resources that can be deleted. */
const before: { readonly [operationId: string]: string } = {
  unblacklistDevice: "blacklistDevice",
  removePolicyFeature: "setPolicyFeature"
}

const readyFor = Effect.fnUntraced(function* (operation: Operation, fixture: Fixture) {
  const { data } = yield* Conversation
  const first = before[operation.id]
  if (first !== undefined)
    yield* data(first, { ...requestOf(operationOf(first), fixture), ...withBody(operationOf(first), fixture) })
  const [param, second] = operation.params
  if (operation.method !== "DELETE" || param === undefined || second !== undefined) return fixture
  const id = yield* (yield* Fixtures).another(param.kind, fixture)
  return { ...fixture, ids: { ...fixture.ids, [param.kind]: id } }
})

/** What the token has requested: it does not find requests of others. */
const withRequests = Effect.fnUntraced(function* (fixture: Fixture, authorization: string) {
  const { data } = yield* Conversation
  const make = Effect.fnUntraced(function* (operation: Operation) {
    const body = bodyOf(operation, fixture)
    return (yield* data<{ readonly id: string }>(operation.id, { body, authorization })).id
  })
  const exports = yield* make(operationOf("createReportExport"))
  const jobs = yield* make(operationOf("createBulkJob"))
  return { ...fixture, ids: { ...fixture.ids, exports, "bulk-jobs": jobs } }
})

layer(layerContract, { timeout: "2 minutes" })("A token for one product", (it) => {
  it.effect("does not find any record of another product, and changes none", () =>
    Effect.gen(function* () {
      const { ask, data } = yield* Conversation
      const [own, other] = [yield* makeLinked, yield* makeLinked]
      const authorization = yield* tokenFor(own)
      const shown = Effect.forEach(["getLicense", "getProduct", "getPolicy", "getCustomer", "getOrder"], (id) =>
        data(id, requestOf(operationOf(id), other))
      )
      const unchanged = yield* shown
      for (const operation of inCase("record")) {
        const body = withBody(operation, other)
        const answer = yield* ask(operation, { ...requestOf(operation, other), ...body, authorization })
        assertRefused(answer, 404, "NOT_FOUND")
        // The same as for an id that does not exist.
        const unknown = Object.fromEntries(operation.params.map(({ name }) => [name, "unknown"]))
        const missing = yield* ask(operation, {
          ...requestOf(operation, other),
          ...body,
          params: unknown,
          authorization
        })
        const named = Object.values(paramsOf(operation, other))[0]!
        assert.deepStrictEqual(
          [missing.status, missing.error],
          [404, { ...answer.error, message: answer.error.message!.replace(named, "unknown") }],
          operation.id
        )
      }
      assert.deepStrictEqual(yield* shown, unchanged)
    })
  )

  it.effect("does not find a second record of another product under an own one", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const [own, other] = [yield* makeLinked, yield* makeLinked]
      const authorization = yield* tokenFor(own)
      for (const operation of inCase("record").filter(({ params }) => params.length > 1)) {
        const params = requestOf(operation, own).params!
        const last = operation.params.at(-1)!.name
        const foreign = { ...params, [last]: requestOf(operation, other).params![last]! }
        const body = withBody(operation, own)
        const answer = yield* ask(operation, { ...requestOf(operation, own), ...body, params: foreign, authorization })
        assertRefused(answer, 404, "NOT_FOUND", last)
      }
    })
  )

  it.effect("refuses every id of another product's record in a body like an unknown one", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const [own, other] = [yield* makeLinked, yield* makeLinked]
      const authorization = yield* tokenFor(own)
      let tried = 0
      for (const operation of inCase("record", "made").filter(({ body }) => body !== undefined)) {
        const request = requestOf(operation, yield* withRequests(own, authorization))
        for (const field of new Set(idFieldsOf(operation.body!))) {
          const table = namingFields[field]
          if (table === undefined || (field === "feature_id" && operation.id === "createLicense")) continue
          const foreign = other.ids[table]!
          const valid = acceptedWith(operation.id, field, bodyOf(operation, own) as object)
          const bodyWith = (id: string) => withId(operation.body!, valid, field, id)!
          const { body, path } = bodyWith(foreign)
          const answer = yield* ask(operation, { ...request, body, authorization })
          assertRefused(answer, 404, "NOT_FOUND", path)
          const unknown = yield* ask(operation, { ...request, body: bodyWith("unknown").body, authorization })
          const error = { ...answer.error, message: answer.error.message!.replace(foreign, "unknown") }
          assert.deepStrictEqual([unknown.status, unknown.error], [404, error], `${operation.id} ${field}`)
          tried++
        }
      }
      assert.isAtLeast(tried, 15)
    })
  )

  it.effect("works on the records of its own product", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const [other, read] = [yield* makeLinked, yield* makeLinked]
      for (const operation of inCase("record", "made", "report", "open")) {
        const own = operation.method === "GET" ? read : yield* makeLinked
        const ready = yield* readyFor(operation, own)
        const authorization = yield* tokenFor(own, ready)
        const fixture = yield* withRequests(ready, authorization)
        const request = { ...requestOf(operation, fixture), ...withBody(operation, fixture), authorization }
        const answer = yield* ask(operation, request)
        // A customer that could be deleted has no license.
        if (operation.id === "deleteCustomer") assertRefused(answer, 404, "NOT_FOUND")
        else assert.isBelow(answer.status, 300, `${operation.id}: ${answer.text}`)
        assertOwn(answer, other, operation.id)
      }
    })
  )

  it.effect("lists and finds its own records only, and counts only them", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const [own, other, third] = [yield* makeLinked, yield* makeLinked, yield* makeLinked]
      for (const [fixtures, hidden] of [
        [[own], [other, third]],
        [[own, third], [other]]
      ] as const) {
        const authorization = yield* tokenFor(...fixtures)
        yield* withRequests(own, authorization)
        for (const operation of inCase("list", "report")) {
          const counted = operation.query.some(({ name }) => name === "include_total") ? "&include_total=true" : ""
          const request = requestOf(operation, own)
          const answer = yield* ask(operation, { ...request, query: `${request.query}${counted}`, authorization })
          assert.strictEqual(answer.status, 200, `${operation.id}: ${answer.text}`)
          for (const fixture of hidden) assertOwn(answer, fixture, operation.id)
          const { data, page_info } = answer.json as Listed
          if (page_info === undefined) continue
          assert.isNotEmpty(data, operation.id)
          assert.isNull(page_info.next_cursor, operation.id)
          if (page_info.total !== undefined) assert.strictEqual(page_info.total, data.length, operation.id)
        }
      }
    })
  )

  it.effect("gets nothing for a record of another product in a query", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const [own, other] = [yield* makeLinked, yield* makeLinked]
      const authorization = yield* tokenFor(own)
      for (const operation of inCase("list", "report")) {
        for (const { name } of operation.query) {
          const id = name === "resource_id" ? other.ids["licenses"] : other.ids[`${name.slice(0, -"_id".length)}s`]
          const place = name === "policy_id" ? other.ids["policies"] : id
          if (!name.endsWith("_id") || place === undefined) continue
          const right = new URLSearchParams(requestOf(operation, own).query)
          right.set(name, place)
          const answer = yield* ask(operation, { query: `?${right}`, authorization })
          if (cases[operation.id] === "report") assertRefused(answer, 404, "NOT_FOUND", name)
          else assert.deepStrictEqual((answer.json as Listed).data, [], `${operation.id} ${name}: ${answer.text}`)
        }
      }
      for (const text of [other.licenseKey, other.fingerprint]) {
        const answer = yield* ask(operationOf("search"), { query: `?q=${encodeURIComponent(text)}`, authorization })
        for (const found of Object.values((answer.json as { readonly data: object }).data))
          assert.deepStrictEqual(found, [])
      }
    })
  )

  it.effect("does not reach what belongs to no product", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const fixture = yield* (yield* Fixtures).make
      const authorization = yield* tokenFor(fixture)
      const expected = {
        hidden: [404, "NOT_FOUND"],
        forbidden: [403, "TOKEN_SCOPE_DENIED"],
        admin: [403, "TOKEN_SCOPE_DENIED"]
      } as const
      for (const [kind, [status, code]] of Object.entries(expected)) {
        for (const operation of inCase(kind as Case)) {
          const request = { ...requestOf(operation, fixture), ...withBody(operation, fixture), authorization }
          assertRefused(yield* ask(operation, request), status, code)
        }
      }
    })
  )
})

interface Listed {
  readonly data: ReadonlyArray<unknown>
  readonly page_info?: { readonly next_cursor: unknown; readonly total?: number }
}
