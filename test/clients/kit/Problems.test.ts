/** What the kit tells a developer: mistakes in the options, and why no believed response came. */
import { createServer } from "node:net"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type KitOptions, LicenseKit, memoryStore } from "../../../src/clients/kit/LicenseKit.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { freePort } from "../../support/processes/FreePort.ts"
import { licensed } from "./Machines.ts"

const key = { kid: "d1ec1e3726c6113b", public_key: "m3fJ3DfRu6GEibdAjViT6iTyC8JY6FCr3yaLI2NzbQM=" }
const right: KitOptions = {
  baseUrl: "https://licenses.example.com/licensing",
  productCode: "editor-pro",
  keys: [key],
  binding: { fingerprint: "machine" },
  store: memoryStore()
}

describe("The kit's options", () => {
  const wrong: ReadonlyArray<readonly [Partial<KitOptions>, RegExp]> = [
    ...[
      "licenses.example.com",
      "ftp://example.com",
      "https://",
      "https://example.com?x=1",
      "https://u:p@example.com"
    ].map((baseUrl) => [{ baseUrl }, /baseUrl is the service's address/] as const),
    ...["https://example.com/api/v1", "https://example.com/api/v1/", "https://example.com/x/api"].map(
      (baseUrl) => [{ baseUrl }, /baseUrl ends before/] as const
    ),
    [{ productCode: "Editor Pro" }, /productCode/],
    [{ keys: [] }, /keys needs/],
    [{ keys: [{ ...key, public_key: "c2hvcnQ=" }] }, /keys has entries/],
    [{ binding: { fingerprint: "" } }, /binding needs/],
    [{ store: {} as never }, /store needs/],
    // JavaScript has no types that say what is missing.
    [{ productCode: undefined as never }, /productCode is/],
    [{ keys: undefined as never }, /keys needs/],
    [{ binding: undefined as never }, /binding needs/],
    [{ store: undefined as never }, /store needs/],
    // setTimeout takes at most 2^31 - 1: a longer wait would end at once.
    ...[0, 2 ** 31, Number.POSITIVE_INFINITY, Number.NaN].map(
      (timeoutMillis) => [{ timeoutMillis }, /timeoutMillis is more than 0 and at most 2147483647/] as const
    ),
    [{ toleranceHours: Number.NaN }, /toleranceHours/]
  ]

  it.effect("are checked when it opens, each with what to write", () =>
    Effect.promise(async () => {
      await LicenseKit.open(right)
      await LicenseKit.open({ ...right, timeoutMillis: 2 ** 31 - 1 })
      await LicenseKit.open({ ...right, keys: [], trustPublishedKeys: true, binding: { is_container: true } })
      for (const [options, sentence] of wrong) {
        const problem = await LicenseKit.open({ ...right, ...options }).catch((error) => error)
        assert.instanceOf(problem, TypeError, JSON.stringify(options))
        assert.match(problem.message, sentence)
      }
    })
  )
})

/** A server that says something that is no HTTP, or nothing. */
const stranger = (greeting: string | undefined) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer((socket) => {
        socket.on("error", () => {})
        if (greeting !== undefined) socket.once("data", () => socket.end(greeting))
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(Effect.map((server) => `127.0.0.1:${(server.address() as { readonly port: number }).port}`))

layer(TestServer.layer, { timeout: 60_000 })("A service that is not reached", (it) => {
  it.effect("is named by its problem", () =>
    Effect.gen(function* () {
      const { kit, license, machine } = yield* licensed()
      yield* Effect.promise(() => kit.activate(license.license_key))
      const problemAt = (baseUrl: string, more: Partial<KitOptions> = {}) =>
        Effect.promise(async () => {
          const { platform: _, ...options } = machine.options
          const { problem } = await (await LicenseKit.open({ ...options, baseUrl, ...more })).validate()
          return problem
        })
      assert.deepStrictEqual(yield* problemAt(`http://127.0.0.1:${yield* freePort}`), {
        kind: "refused",
        cause: "ECONNREFUSED"
      })
      assert.strictEqual((yield* problemAt("http://no-such-host.invalid"))?.kind, "dns")
      const page = `HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\n<html/>`
      const loginPage = yield* stranger(page)
      assert.deepStrictEqual(yield* problemAt(`http://${loginPage}`), { kind: "response", status: 200 })
      assert.strictEqual((yield* problemAt(`https://${loginPage}`))?.kind, "tls")
      const moved = yield* stranger(page.replace("200 OK", "307 Moved"))
      assert.deepStrictEqual(yield* problemAt(`http://${moved}`), { kind: "response", status: 307 })
      const silent = yield* stranger(undefined)
      assert.deepStrictEqual(yield* problemAt(`http://${silent}`, { timeoutMillis: 50 }), { kind: "timeout" })
      machine.isOnline = false
      const { problem } = yield* Effect.promise(() => kit.validate())
      assert.deepStrictEqual(problem, { kind: "network", cause: "fetch failed" })
    }).pipe(Effect.scoped)
  )
})
