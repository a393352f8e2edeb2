/** A few thousand requests of `npm run fuzz:bytes`, and what its checks find. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../support/database/Database.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { serviceToken, startService } from "../../support/processes/Processes.ts"
import { faultOf, responsesIn } from "./Answers.ts"
import { fuzzBytes } from "./Fuzzer.ts"
import { makeTemplates } from "./Records.ts"

const requests = 2_000
const rates = ["RUNTIME", "ACTIVATION", "MANAGEMENT", "FAILURES"].map((name) => [`LICENSING_RATE_${name}`, "0"])

layer(Database.layerUrl, { excludeTestServices: true, timeout: 120_000 })("The listener", (it) => {
  it.effect("answers mutated requests with valid responses or the error envelope, and logs no error", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-bytes-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
      )
      const longest = join(folder, "longest")
      const service = yield* startService({
        ...Object.fromEntries(rates),
        NODE_OPTIONS: `--import=${fileURLToPath(new URL("LongestTask.ts", import.meta.url))}`,
        LONGEST_TASK_FILE: longest
      })
      const { manage, port, written } = service
      const templates = yield* Effect.promise(() => makeTemplates(`http://127.0.0.1:${port}`, serviceToken))
      yield* service.signal("SIGUSR2")
      const { statuses, violations } = yield* fuzzBytes({ port, templates, seed: 1, requests })
      assert.deepStrictEqual(
        violations.map(({ connection, what }) => `connection ${connection}: ${what}`),
        []
      )
      for (const status of [200, 201, 400, 404, 405, 409, 415, 422]) assert.isTrue(statuses.has(status), String(status))
      assert.notMatch(written.out + written.error, /"level":"(error|fatal)"/i)
      assert.isAbove(Number(readFileSync(longest, "utf8")), 0)
      assertAnswered(yield* manage("GET", "/products"), 200)
    }).pipe(Effect.scoped)
  )
})

describe("The checks of its responses", () => {
  const response = (status: number, body: string, rest = "") =>
    Buffer.from(
      `HTTP/1.1 ${status} X\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}${rest}`
    )
  const faults = (bytes: Buffer) => responsesIn(bytes, false).responses.map(faultOf)
  const refusal = JSON.stringify({ error: { code: "NOT_FOUND", message: "No." }, meta: { request_id: "req_1" } })

  it("find failures, other refusals than the envelope, and bodies that are not JSON", () => {
    assert.deepStrictEqual(faults(Buffer.concat([response(200, "{}"), response(404, refusal)])), [undefined, undefined])
    for (const wrong of [response(500, refusal), response(400, refusal), response(404, "{}"), response(200, "{")])
      assert.isString(faults(wrong)[0])
  })

  it("find responses that are incomplete", () => {
    const complete = response(200, "{}")
    assert.strictEqual(responsesIn(complete.subarray(0, -1), false).rest.length, complete.length - 1)
    const chunked = Buffer.from("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
    assert.deepStrictEqual(
      responsesIn(chunked, false).responses.map(({ body }) => body.toString()),
      ["{}"]
    )
    assert.isAbove(responsesIn(chunked.subarray(0, -2), false).rest.length, 0)
  })
})
