/** Contradictions in quotas, over HTTP: each is 422 with the field, and changes nothing. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

/** The body of an assignment, and the field that the refusal names. */
const faults = [
  [{ reset_period: "month" }, "reset_period"],
  [{ reset_period: "day", reset_anchor: "license" }, "reset_period"],
  [{ overage_max: 1 }, "overage_max"],
  [{ max_consumptions: 10, reset_anchor: "license" }, "reset_anchor"],
  [{ max_consumptions: 10, rollover_max: 1 }, "rollover_max"],
  [{ max_consumptions: 10, reset_period: "month", rollover_max: 11 }, "rollover_max"],
  [{ max_consumptions: 10, reset_period: "month", rollover_max: 1.5 }, "rollover_max"],
  [{ max_consumptions: 10, reset_period: "month", rollover_max: -1 }, "rollover_max"],
  [{ max_consumptions: 10, reset_period: "fortnight" }, "reset_period"],
  [{ max_consumptions: 10, reset_period: "month", reset_anchor: "order" }, "reset_anchor"],
  [{ max_consumptions: 10, overage_max: -2 }, "overage_max"],
  [{ max_consumptions: 10, overage_max: 2 ** 53 }, "overage_max"]
] as const

/** A license without a subscription cannot follow one; a policy's feature may. */
const ofSubscription = [
  [{ max_consumptions: 10, reset_period: "subscription" }, "reset_period"],
  [{ max_consumptions: 10, reset_period: "month", reset_anchor: "subscription" }, "reset_anchor"]
] as const

const setUp = Effect.gen(function* () {
  const { client, send } = yield* TestServer
  const license = yield* issue()
  const params = { id: license.product_id }
  const feature = yield* client.features.create({ params, payload: { name: "Exports", code: "exports" } })
  const { policy_id } = yield* client.licenses.get({ params: { id: license.id } })
  const assign = (body: object) => license.post("features", { feature_id: feature.id, ...body })
  const refusal = ({ json, status }: Effect.Success<ReturnType<typeof send>>) => {
    const { code, detail } = (json as { readonly error: { readonly code: string; readonly detail?: string } }).error
    return [status, code, detail]
  }
  return { assign, client, feature, license, policy_id, refusal, send }
})

layer(TestServer.layer)("Quotas with a contradiction", (it) => {
  it.effect("are refused in an assignment, in a policy's feature and in a creation, each with its field", () =>
    Effect.gen(function* () {
      const { assign, client, feature, license, policy_id, refusal, send } = yield* setUp
      for (const [body, field] of [...faults, ...ofSubscription])
        assert.deepStrictEqual(refusal(yield* assign(body)), [422, "VALIDATION_ERROR", field], JSON.stringify(body))
      const path = `/api/v1/policies/${policy_id}/features/${feature.id}`
      for (const [body, field] of faults)
        assert.deepStrictEqual(
          refusal(yield* send({ method: "PUT", path, body: { enabled: true, ...body } })),
          [422, "VALIDATION_ERROR", field],
          JSON.stringify(body)
        )
      for (const [body, field] of [...faults, ...ofSubscription]) {
        const created = yield* send({
          method: "POST",
          path: "/api/v1/licenses",
          body: {
            ...{ product_id: license.product_id, policy_id, expires_at: "2090-01-01T00:00:00Z" },
            features: [{ feature_id: feature.id, ...body }]
          }
        })
        assert.deepStrictEqual(
          refusal(created),
          [422, "VALIDATION_ERROR", `features[0].${field}`],
          JSON.stringify(body)
        )
      }
      const { items } = yield* client.licenses.listFeatures({ params: { id: license.id }, query: {} })
      assert.deepStrictEqual(items, [])
      for (const [body] of ofSubscription)
        assert.strictEqual((yield* send({ method: "PUT", path, body: { enabled: true, ...body } })).status, 200)
    })
  )

  it.effect("are refused where a change contradicts what is stored", () =>
    Effect.gen(function* () {
      const { assign, client, license, refusal } = yield* setUp
      const stored = { max_consumptions: 10, reset_period: "month", rollover_max: 8 }
      assert.strictEqual((yield* assign(stored)).status, 200)
      const wrong = [422, "VALIDATION_ERROR"]
      assert.deepStrictEqual(refusal(yield* assign({ max_consumptions: 7 })), [...wrong, "max_consumptions"])
      assert.deepStrictEqual(refusal(yield* assign({ max_consumptions: null })), [...wrong, "max_consumptions"])
      assert.deepStrictEqual(refusal(yield* assign({ rollover_max: 11 })), [...wrong, "rollover_max"])
      const reset = (body: object) => license.post("usage/reset", { feature_code: "exports", ...body })
      assert.deepStrictEqual(refusal(yield* reset({ max_consumptions: 7 })), [...wrong, "max_consumptions"])
      const { items } = yield* client.licenses.listFeatures({ params: { id: license.id }, query: {} })
      assert.deepInclude(items[0], { ...stored, reset_period: "month" })
    })
  )

  it.effect("and reversals that say something else are refused with the field", () =>
    Effect.gen(function* () {
      const { license, refusal, send } = yield* setUp
      const authorization = `License ${license.license_key}`
      const consume = (body: object) =>
        send({
          ...{ method: "POST", path: "/api/v1/license/consume", anonymous: true, headers: { authorization } },
          body: { fingerprint: "m", feature_code: "exports", event_id: "r", ...body }
        })
      yield* license.runtime.activate({ payload: { fingerprint: "m" } })
      for (const [body, field] of [
        [{ reverses: "e", amount: 1 }, "amount"],
        [{ reverses: "" }, "reverses"],
        [{ reverses: "e".repeat(300) }, "reverses"]
      ] as const)
        assert.deepStrictEqual(refusal(yield* consume(body)), [422, "VALIDATION_ERROR", field], JSON.stringify(body))
    })
  )
})
