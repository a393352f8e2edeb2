/**
 * What the feed and deliveries never reveal: every field that identifies a machine, and every secret, checked one by
 * one.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { redacted } from "../../../src/platform/signing/Digest.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { layerService, makeReceiver } from "../../support/http/Webhooks.ts"

/** Values that occur nowhere else, so that finding one in a text proves that it was revealed. */
const hardware = { fingerprint: "fingerprint-4b1d", hostname: "hostname-9c2e" }
const container = {
  container_id: "container-77af",
  cluster_id: "cluster-12d0",
  namespace: "namespace-e5b3",
  pod_name: "pod-f00d"
}
const named: Readonly<Record<string, string>> = { ...hardware, ...container }

layer(layerService())("Events and deliveries", (it) => {
  it.effect("contain a digest of each field that identifies a machine, and no key, token or secret", () =>
    Effect.gen(function* () {
      const { adminToken, client, send } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const receiver = yield* makeReceiver
      const payload = { name: "all", url: receiver.url }
      const { secret, webhook } = yield* client.webhooks.create({ payload })
      const rotated = yield* client.webhooks.update({ params: { id: webhook.id }, payload: { rotate_secret: true } })
      const { id, license_key } = yield* issue({ max_floating_users: 5, max_activations: 0 })
      const post = Effect.fnUntraced(function* (path: string, body: object) {
        const headers = { authorization: `License ${license_key}` }
        return assertAnswered(yield* send({ method: "POST", path: `/api/v1/license/${path}`, headers, body }), 200)
      })
      const inContainer = { ...container, is_container: true }
      for (const machine of [hardware, inContainer]) {
        yield* post("activate", machine)
        yield* post("validate", machine)
        yield* post("offline", machine)
        yield* post("deactivate", machine)
      }
      const taken = (yield* post("floating/checkout", { ...hardware, fingerprint: "fingerprint-4b1d" })) as {
        lease_token: string
        device_id: string
      }
      yield* post("floating/checkin", { lease_token: taken.lease_token })
      yield* client.devices.blacklist({ params: { id, device_id: taken.device_id } })
      const key = yield* client["api-keys"].create({ payload: { name: "k" } })

      const rows = yield* sql<{ text: string; sequence: number; event_type: string }>`
        SELECT to_json(e)::text AS text, sequence, event_type FROM events e ORDER BY sequence`
      const owed = rows.filter(
        ({ sequence }) => sequence >= rows.find((row) => row.event_type === "webhook.created")!.sequence
      )
      yield* Effect.repeat(receiver.next, { until: () => receiver.received.length >= owed.length })
      const publishedTexts = [
        ...rows.map(({ text }) => text),
        ...receiver.received.map(({ body, headers }) => `${body} ${JSON.stringify(headers)}`)
      ]
      const everything = publishedTexts.join("\n")
      for (const [field, value] of Object.entries(named)) {
        assert.notInclude(everything, value, field)
        assert.include(everything, `"${field}": "${redacted(value)}"`, `${field} in the feed`)
        assert.include(everything, `"${field}":"${redacted(value)}"`, `${field} in a delivery`)
      }
      const secrets = [license_key, license_key.replaceAll("-", ""), taken.lease_token, key.token, adminToken, secret]
      const newer = "secret" in rotated ? rotated.secret : ""
      for (const value of [...secrets, newer, secret.slice(6), newer.slice(6), "token=of-the-receiver"]) {
        assert.isAbove(value.length, 10)
        assert.notInclude(everything, value)
      }
      const types = new Set(rows.map(({ event_type }) => event_type))
      for (const type of [
        "license.activated",
        "license.deactivated",
        "license.offline_issued",
        "lease.checked_out",
        "device.blacklisted",
        "webhook.secret_rotated"
      ]) {
        assert.isTrue(types.has(type), type)
      }
    })
  )
})
