/** Keygen's rules that differ from this service's, and products whose code exists already. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertAnswered } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { operatorSettings, runLine } from "../../support/processes/CommandLine.ts"

const idOf = (type: string, n: number) => `${type}-${n}-4000-8000-000000000000`
const resource = (type: string, n: number, attributes: object, related: Readonly<Record<string, string>> = {}) => ({
  ...{ id: idOf(type, n), type, attributes },
  relationships: Object.fromEntries(Object.entries(related).map(([name, id]) => [name, { data: { id } }]))
})

/** An account of one product, policy and entitlement, with two licenses and a machine each. */
const account = (n: number, code: string, rules: object = {}) => {
  const product = idOf("products", n)
  const policy = idOf("policies", n)
  const floating = { floating: true, maxMachines: 3 }
  const license = (at: number, attributes: object) =>
    resource("licenses", at, { key: `RULES-KEY-000${at}`, ...floating, ...attributes }, { product, policy })
  const machine = (at: number) =>
    resource(...(["machines", at, { fingerprint: `m${at}`, heartbeatStatus: "ALIVE" }] as const), {
      license: idOf("licenses", at)
    })
  const entitlement = resource("entitlements", n, { name: "Raw files", code: "RAW" })
  return {
    account: [
      resource("products", n, { name: "Rules", code }),
      resource("policies", n, { name: "Pro", ...floating, ...rules }, { product }),
      ...[license(n * 2, {}), license(n * 2 + 1, { maxMachines: 9 }), machine(n * 2), machine(n * 2 + 1)]
    ],
    entitled: { data: [entitlement], links: { self: `/v1/accounts/a/policies/${policy}/entitlements` } }
  }
}

const importing = Effect.fnUntraced(function* (given: ReturnType<typeof account>, ...args: ReadonlyArray<string>) {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-keygen-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  writeFileSync(join(folder, "account.json"), JSON.stringify({ data: given.account }))
  writeFileSync(join(folder, "entitled.json"), JSON.stringify(given.entitled))
  const { code, out } = yield* runLine(yield* operatorSettings, "import", "keygen", folder, ...args, "--json")
  return { code, ...JSON.parse(out) } as {
    readonly code: number
    readonly imported?: Record<string, number>
    readonly existed_already?: number
    readonly unmapped: ReadonlyArray<{ readonly message: string }>
    readonly faults: ReadonlyArray<unknown>
    readonly error?: string
  }
}, Effect.scoped)

const licensesOf = Effect.fnUntraced(function* (code: string) {
  const { client } = yield* TestServer
  const [product] = (yield* client.products.list({ query: { code } })).items
  return (yield* client.licenses.list({ query: { product_id: product!.id } })).items
})

const validate = Effect.fnUntraced(function* (n: number) {
  const { send } = yield* TestServer
  return yield* send({
    ...{ method: "POST", path: "/api/v1/license/validate", anonymous: true, body: { fingerprint: `m${n}` } },
    headers: { authorization: `License RULES-KEY-000${n}` }
  })
})

layer(TestServer.layerWith({}), { timeout: 120_000 })("`licensing import keygen`", (it) => {
  it.effect("notes strategies without an equivalent, and gives a license its own limits only", () =>
    Effect.gen(function* () {
      const given = account(1, "strategies", {
        ...{ overageStrategy: "ALLOW_1_5X_OVERAGE", heartbeatCullStrategy: "KEEP_DEAD", requireHeartbeat: true },
        ...{ heartbeatResurrectionStrategy: "ALWAYS_REVIVE", heartbeatBasis: "FROM_FIRST_PING" }
      })
      const { code, unmapped } = yield* importing(given)
      assert.strictEqual(code, 0)
      for (const value of ["ALLOW_1_5X_OVERAGE", "KEEP_DEAD", "ALWAYS_REVIVE", "FROM_FIRST_PING"]) {
        assert.isTrue(
          unmapped.some(({ message }) => message.includes(` ${value}`)),
          value
        )
      }
      const limits = (yield* licensesOf("strategies")).map(({ max_activations }) => max_activations)
      assert.sameMembers([...limits], [undefined, 9])
    })
  )

  it.effect("imports onto an existing product or another code, and says so when a code exists", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const product = yield* client.products.create({ payload: { name: "Sold here", code: "taken" } })
      const given = account(2, "taken")
      const map = (code: string) => ["--product", `${idOf("products", 2)}=${code}`]
      const clash = yield* importing(given)
      assert.deepStrictEqual([clash.code, clash.faults], [1, []])
      assert.match(clash.error ?? "", /code taken .*--product products-2\S*=CODE/)
      assert.match((yield* importing(given, "--product", "nobody=other")).error ?? "", /no product nobody/)
      assert.match((yield* importing(given, ...map("taken"))).error ?? "", /taken .*features? raw/)

      const other = yield* importing(given, ...map("other"), "--dry-run")
      assert.deepInclude(other.imported, { product: 1, feature: 1, license: 2 })
      yield* client.features.create({ params: { id: product.id }, payload: { name: "Raw", code: "raw" } })
      const done = yield* importing(given, ...map("taken"))
      assert.deepStrictEqual(done.imported, { policy: 1, policy_feature: 1, license: 2, license_feature: 2, device: 2 })
      const answer = assertAnswered(yield* validate(4), 200) as { readonly features: ReadonlyArray<{ code: string }> }
      assert.deepStrictEqual(
        answer.features.map(({ code }) => code),
        ["raw"]
      )
      const again = yield* importing(given, ...map("taken"))
      assert.deepStrictEqual([again.imported, again.existed_already], [{}, 3])
    })
  )

  it.effect("keeps the slot of a machine until its first heartbeat here", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      yield* importing(account(3, "beats", { requireHeartbeat: true, heartbeatDuration: 600 }))
      yield* advance(3 * 86_400)
      assertAnswered(yield* validate(6), 200)
      yield* advance(3_600)
      const slots = (yield* licensesOf("beats")).map(({ active_device_count }) => active_device_count)
      assert.sameMembers([...slots], [0, 1])
      assert.strictEqual((yield* validate(6)).status, 403)
      assertAnswered(yield* validate(7), 200)
    })
  )

  it.effect("gives new licenses of an existing policy its rules and features here, and skips what it cannot have", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const given = account(4, "later")
      yield* importing(given)
      const [product] = (yield* client.products.list({ query: { code: "later" } })).items
      const params = { id: product!.id }
      const [policy] = (yield* client.policies.list({ params, query: {} })).items
      const [feature] = (yield* client.features.list({ params, query: {} })).items
      yield* client.policies.setFeature({
        params: { id: policy!.id, feature_id: feature!.id },
        payload: { enabled: true, max_consumptions: 7 }
      })
      const sold = (n: number, attributes: object) =>
        resource("licenses", n, { key: `LATER-KEY-000${n}`, ...attributes }, { policy: idOf("policies", 4) })
      const more = [sold(90, {}), sold(91, { expiry: "2099-01-01T00:00:00Z" })]
      const { imported, unmapped } = yield* importing({ ...given, account: [...given.account, ...more] })
      assert.deepStrictEqual(imported, { license: 1, license_feature: 1 })
      assert.isTrue(unmapped.some(({ message }) => /skipped: expires_at: A perpetual license/.test(message)))
      const [newest] = yield* licensesOf("later")
      const { items } = yield* client.licenses.listFeatures({ params: { id: newest!.id }, query: {} })
      assert.deepStrictEqual(
        items.map(({ max_consumptions }) => max_consumptions),
        [7]
      )
    })
  )

  it.effect("ends a term from the first activation of a license whose machines are active already", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      yield* importing(account(5, "rolling", { duration: 30 * 86_400, expirationBasis: "FROM_FIRST_ACTIVATION" }))
      assertAnswered(yield* validate(11), 200)
      yield* advance(31 * 86_400)
      assert.strictEqual((yield* validate(11)).status, 403)
    })
  )
})
