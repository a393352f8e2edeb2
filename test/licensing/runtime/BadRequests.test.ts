/** Runtime requests that no application means: refused for what is wrong with them, at once, and counted as nothing. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { bodyBytesMax } from "../../../src/contract/api/Requests.ts"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { issue, makeMetered } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

const posting = (license_key: string) =>
  Effect.map(
    TestServer,
    ({ send }) =>
      (operation: string, body: unknown) =>
        send({
          method: "POST",
          path: `/api/v1/license/${operation}`,
          headers: { authorization: `License ${license_key}` },
          body
        })
  )

layer(TestServer.layer)("The runtime API", (it) => {
  it.effect("refuses a fingerprint of 10 MB before it has come, with its length and in chunks", () =>
    Effect.gen(function* () {
      const { exchange } = yield* TestServer
      const head = (...lines: ReadonlyArray<string>) =>
        [
          "POST /api/v1/license/activate HTTP/1.1",
          "Host: x",
          "Connection: close",
          "Content-Type: application/json",
          ...lines,
          "",
          ""
        ].join("\r\n")
      const begin = '{"fingerprint":"'
      // The rest never comes: whoever waited for it would not answer.
      assertRefused(yield* exchange(`${head("Content-Length: 10000000")}${begin}`), 413, "PAYLOAD_TOO_LARGE")
      const chunk = begin + "f".repeat(bodyBytesMax)
      const { license_key } = yield* makeMetered
      const chunked = `${head("Transfer-Encoding: chunked", `Authorization: License ${license_key}`)}${chunk.length.toString(16)}\r\n${chunk}\r\n`
      assertRefused(yield* exchange(chunked), 413, "PAYLOAD_TOO_LARGE")
    })
  )

  it.effect("takes whole amounts from 1 to 2^53 - 1, and counts nothing of any other", () =>
    Effect.gen(function* () {
      const { license_key, license } = yield* makeMetered
      const { client } = yield* TestServer
      const post = yield* posting(license_key)
      let asked = 0
      const consume = (amount: string) =>
        post(
          "consume",
          `{"fingerprint":"a machine","feature_code":"exports","event_id":"e${++asked}","amount":${amount}}`
        )
      for (const amount of [
        "0",
        "-1",
        "1.5",
        "9007199254740992",
        "9223372036854775807",
        "9223372036854775808",
        "1e300"
      ]) {
        assertRefused(yield* consume(amount), 422, "VALIDATION_ERROR", "amount")
      }
      for (const amount of ['"1"', "null", "true", "[1]"])
        assertRefused(yield* consume(amount), 400, "INVALID_JSON", "amount")
      // In range, and more than there is.
      assertRefused(yield* consume("9007199254740991"), 403, "USAGE_LIMIT_EXCEEDED")
      assertAnswered(yield* consume("1"), 200)
      const { total_consumptions } = yield* client.licenses.get({ params: { id: license.id } })
      assert.strictEqual(total_consumptions, 1)
    })
  )

  it.effect("knows a lease by its token on its own license alone", () =>
    Effect.gen(function* () {
      const [mine, another] = [yield* issue({ max_floating_users: 1 }), yield* issue({ max_floating_users: 1 })]
      const lease = yield* another.runtime.checkout({ payload: { fingerprint: "m" } })
      const { lease_token } = lease.data
      const post = yield* posting(mine.license_key)
      for (const operation of ["floating/heartbeat", "floating/checkin"]) {
        assertRefused(yield* post(operation, { lease_token }), 404, "LEASE_NOT_FOUND")
      }
      yield* another.runtime.heartbeat({ payload: { lease_token } })
    })
  )

  it.effect("takes a license key in lower case without its dashes", () =>
    Effect.gen(function* () {
      const { license_key } = yield* issue()
      const post = yield* posting(license_key.toLowerCase().replaceAll("-", ""))
      assertAnswered(yield* post("activate", { fingerprint: "m" }), 200)
    })
  )
})
