/** What support does with licenses from the command line, beside a running instance. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Database } from "../../support/database/Database.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { makeMetered } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { operatorSettings, runLine } from "../../support/processes/CommandLine.ts"

const command = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(operatorSettings, (settings) => runLine(settings, ...args))

/** Issues a license with one activated machine. */
const sold = Effect.gen(function* () {
  const { client, send } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "Editor", code: "editor" } })
  const policy = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: "One", code: "one", license_type: "perpetual" }
  })
  const { license, license_key } = yield* client.licenses.create({
    payload: {
      product_id: product.id,
      policy_id: policy.id,
      customer_name: "Ada \u001b[31mLovelace",
      customer_email: "ada@example.com"
    }
  })
  const call = (operation: string) =>
    send({
      method: "POST",
      path: `/api/v1/license/${operation}`,
      headers: { authorization: `License ${license_key}` },
      body: { fingerprint: "the secret of a machine", hostname: "ada-laptop" }
    })
  const activated = assertAnswered(yield* call("activate"), 200) as { readonly device_id: string }
  return { call, deviceId: activated.device_id, license, licenseKey: license_key }
})

layer(TestServer.layerOver().pipe(Layer.provideMerge(Database.layerUrl)), { timeout: 60_000 })(
  "`licensing licenses`",
  (it) => {
    it.effect("finds a license, shows it, blocks it and frees its device, and never prints the key", () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { call, deviceId, license, licenseKey } = yield* sold
        const printed: Array<string> = []
        const run = Effect.fnUntraced(function* (code: number, ...args: ReadonlyArray<string>) {
          const result = yield* command("licenses", ...args)
          printed.push(result.out, result.error)
          assert.strictEqual(result.code, code, result.error)
          return result.out
        })
        for (const text of [licenseKey.slice(-4), "ada@exam", "LOVELACE", license.id]) {
          assert.match(
            yield* run(0, "find", text),
            new RegExp(`^${license.id}  active  …${licenseKey.slice(-4)}  no expiry  Ada .*<ada@example.com>$`)
          )
        }
        assert.deepStrictEqual(JSON.parse(yield* run(1, "find", "nobody", "--json")), [])
        assert.strictEqual(yield* run(2, "find", licenseKey), "")
        assert.strictEqual(yield* run(1, "show", "lic_unknown"), "")
        for (const name of ["show", "suspend", "reinstate"]) assert.strictEqual(yield* run(2, name, licenseKey), "")

        const shown = JSON.parse(yield* run(0, "show", license.id, "--json"))
        assert.deepStrictEqual([shown.license.id, shown.license.customer_email], [license.id, "ada@example.com"])
        assert.deepStrictEqual([shown.devices[0].id, shown.devices[0].hostname], [deviceId, "ada-laptop"])
        assert.include(yield* run(0, "show", license.id), `  ${deviceId}  active  hardware  ada-laptop  seen `)

        assert.strictEqual(yield* run(0, "suspend", license.id), `${license.id} suspended`)
        assertRefused(yield* call("check"), 403, "LICENSE_SUSPENDED")
        assert.strictEqual(JSON.parse(yield* run(0, "reinstate", license.id, "--json")).status, "active")
        assertAnswered(yield* call("check"), 200)
        assert.strictEqual(yield* run(0, "reset-device", license.id, deviceId), `${deviceId} reset`)
        assertRefused(yield* call("check"), 403, "DEVICE_NOT_ACTIVE")

        const { items } = yield* client.events.list({ query: { actor_type: "system" } })
        assert.deepStrictEqual(
          items.filter(({ actor_id }) => actor_id === "cli").map(({ event_type }) => event_type),
          ["device.reset", "license.reinstated", "license.suspended"]
        )
        for (const text of printed) {
          assert.notInclude(text, licenseKey)
          assert.notInclude(text, "the secret of a machine")
          assert.notInclude(text.replace(/\\u001b/g, ""), "\u001b")
        }
      })
    )

    it.effect("shows quotas with what was carried over", () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const { license, product, subscription } = yield* makeMetered
        const params = { id: license.id }
        const { items } = yield* client.features.list({ params: { id: product.id }, query: { code: "exports" } })
        const quota = { reset_period: "subscription", rollover_max: 200 } as const
        yield* client.licenses.assignFeature({ params, payload: { feature_id: items[0]!.id, ...quota } })
        const { current_period_end } = subscription
        const current_period_start = subscription.current_period_start + 1
        const payload = { current_period_start, current_period_end }
        yield* client.commerce.updateSubscription({ params: { id: subscription.id }, payload })
        assert.include((yield* command("licenses", "show", license.id)).out, "  exports  enabled  0 of 1200 used")
      })
    )
  }
)
