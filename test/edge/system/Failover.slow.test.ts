/** The database fails over to its synchronous standby while the service counts consumptions. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { openConnection } from "../../../src/platform/postgres/driver/Postgres.ts"
import { inspect } from "../../../src/platform/postgres/migrations/Migrations.ts"
import { Database } from "../../support/database/Database.ts"
import { replicatedDatabase } from "../../support/database/Replication.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { startService } from "../../support/processes/Processes.ts"
import { poll } from "../../support/rules/Poll.ts"

const minutes = 240_000
const clients = 4
/** Acknowledged consumptions before the primary dies, and after the standby's promotion. */
const acknowledgedMin = 200

/** Refused consumptions between the primary's death and the promotion. */
const refusedMin = 40

const platform = Layer.merge(NodeServices.layer, SecureRandom.layerWebCrypto)

layer(platform, { excludeTestServices: true, timeout: minutes })("A failover to a synchronous standby", (it) => {
  it.effect(
    "interrupts the service for less than five seconds, and loses nothing that was acknowledged",
    () =>
      Effect.gen(function* () {
        const { primary, standby, url } = yield* replicatedDatabase
        const service = yield* Effect.provideService(startService({ LICENSING_RATE_RUNTIME: "0" }), Database, { url })
        const licenseKey = yield* soldLicense(service)
        const acknowledged: Array<string> = []
        const refused: Array<string | undefined> = []
        let wanted = Number.POSITIVE_INFINITY

        /** Sends each consumption until it is acknowledged, as an application does. */
        const consume = (client: number) =>
          Effect.gen(function* () {
            for (let ordinal = 0; acknowledged.length < wanted; ordinal++) {
              const event_id = `${client}-${ordinal}`
              const request = { fingerprint: "machine", feature_code: "export", event_id }
              let answer = yield* service.call(licenseKey, "consume", request)
              for (; answer.status === 503; answer = yield* service.call(licenseKey, "consume", request)) {
                refused.push(answer.headers["retry-after"])
              }
              assertAnswered(answer, 200)
              acknowledged.push(event_id)
            }
          })
        const running = yield* Effect.forEach(
          Array.from({ length: clients }, (_, client) => client),
          (client) => Effect.forkChild(consume(client))
        )
        const reach = (count: number) => poll(service.manage("GET", "/products"), () => acknowledged.length >= count)
        yield* reach(acknowledgedMin)
        // The migrations of a standby can be read, too.
        assert.deepStrictEqual(yield* inspect({ url: standby.url }), { pending: [], missing: [] })

        yield* primary.kill
        // The outage lasts until many requests were refused.
        yield* poll(service.manage("GET", "/products"), () => refused.length >= refusedMin)
        yield* standby.promote
        const promotedAt = performance.now()
        const before = acknowledged.length
        yield* reach(before + 1)
        const seconds = (performance.now() - promotedAt) / 1_000
        wanted = acknowledged.length + acknowledgedMin
        yield* Effect.forEach(running, Fiber.join)
        assert.isBelow(seconds, 5)
        assert.deepStrictEqual([...new Set(refused)], ["1"])

        const database = yield* openConnection(standby.url)
        const ledger = yield* database.queryValues("SELECT event_id FROM usage_ledger ORDER BY sequence")
        const counted = ledger.map(([event]) => String(event)).toSorted()
        assert.deepStrictEqual(counted, acknowledged.toSorted())
        const [counter] = yield* database.queryValues("SELECT total_consumptions FROM license_features")
        assert.strictEqual(counter?.[0], acknowledged.length)
        yield* service.stop
      }).pipe(Effect.scoped),
    minutes
  )
})

type Service = Effect.Success<ReturnType<typeof startService>>

/** The key of a license that counts a feature without a limit, activated on one machine. */
const soldLicense = Effect.fnUntraced(function* (service: Service) {
  const create = (path: string, body: object) =>
    Effect.map(service.manage("POST", path, body), ({ json }) => (json as { data: Created }).data)
  const product = yield* create("/products", { name: "Editor", code: "editor" })
  const policy = yield* create(`/products/${product.id}/policies`, {
    name: "One",
    code: "one",
    license_type: "perpetual"
  })
  const feature = yield* create(`/products/${product.id}/features`, { name: "Export", code: "export" })
  const { license, license_key } = yield* create("/licenses", { product_id: product.id, policy_id: policy.id })
  assertAnswered(yield* service.manage("POST", `/licenses/${license.id}/features`, { feature_id: feature.id }), 200)
  assertAnswered(yield* service.call(license_key, "activate", { fingerprint: "machine" }), 200)
  return license_key
})

interface Created {
  readonly id: string
  readonly license: { readonly id: string }
  readonly license_key: string
}
