/** The receiver for development, as a process. */
import { spawn } from "node:child_process"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { headersOf } from "../../../src/ledger/webhooks/Message.ts"
import { keysOf } from "../../../src/ledger/webhooks/Secret.ts"
import { send } from "../../support/http/Http.ts"
import { program } from "../../support/processes/Program.ts"

const secret = "whsec_of-the-development-machine"
const body = Buffer.from(
  `{"id":"evt_7","type":"license.renewed","sequence":7,"created_at":"","data":{"actor_id":"key_1"}}`
)

const listening = Effect.acquireRelease(
  Effect.map(program, (main) => {
    const child = spawn(process.execPath, [main, "webhooks", "listen", "--port", "0", "--secret", secret])
    const written = { out: "", error: "" }
    child.stdout.on("data", (chunk) => {
      written.out += chunk
    })
    const port = Effect.callback<number>((resume) => {
      child.stderr.on("data", (chunk) => {
        written.error += chunk
        const [, portText] = /http:\/\/127\.0\.0\.1:(\d+)\//.exec(written.error) ?? []
        if (portText !== undefined) resume(Effect.succeed(Number(portText)))
      })
    })
    const exit = Effect.callback<number | null>((resume) => {
      child.once("exit", (code) => resume(Effect.succeed(code)))
      child.kill("SIGINT")
    })
    return { child, written, port, exit }
  }),
  ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
)

it.live("`webhooks listen` verifies deliveries, prints them, and refuses what is not genuine", () =>
  Effect.gen(function* () {
    const { exit, port, written } = yield* listening
    const at = yield* port
    const event = { event_type: "license.renewed", sequence: 7 }
    const nowSeconds = Math.floor(Date.now() / 1_000)
    const headers = headersOf(event, "dlv_1_7", body, [keysOf(secret)], nowSeconds)
    assert.strictEqual((yield* send(at, { method: "POST", path: "/", headers, body })).status, 204)
    const changed = Buffer.from(body.toString().replace("key_1", "key_2"))
    assert.strictEqual((yield* send(at, { method: "POST", path: "/", headers, body: changed })).status, 400)
    assert.strictEqual(yield* exit, 0)
    assert.include(written.out, "verified license.renewed dlv_1_7\n")
    assert.include(written.out, `"actor_id": "key_1"`)
    assert.include(written.out, "REFUSED, signature_wrong: dlv_1_7\n")
    assert.notInclude(written.out + written.error, secret)
  }).pipe(Effect.scoped)
)
