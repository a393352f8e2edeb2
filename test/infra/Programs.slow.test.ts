/** Runs the programs of the guides with one service, as readers do who copy them. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { layerSilent, TestServer } from "../support/http/TestServer.ts"
import { layerService } from "../support/http/Webhooks.ts"
import { blocksOf } from "../support/processes/DocumentBlocks.ts"
import { freePort } from "../support/processes/FreePort.ts"
import { bash, codes, Project, run, start, writeTo } from "./programs/Project.ts"

const origin = "tauri://localhost"
const withProject = Project.layer.pipe(
  Layer.provideMerge(layerService({ corsOrigins: [origin] })),
  Layer.provide(layerSilent)
)

interface Shown {
  readonly license_id: string
  readonly features: ReadonlyArray<{ readonly code: string; readonly remaining?: number }>
}

const printedBy = (code: string) =>
  Array.from(code.matchAll(/^\/\/ (.*)$(?![\s\S]*^[^/\n])/gm), ([, line]) => `${line}\n`).join("")

/** The lines that a quick start says that the reader has, and those that it has. Empty ones are not counted. */
const assertLines = (guide: string, ...programs: ReadonlyArray<string | undefined>) => {
  const [, said] =
    /files?, (\d+) lines/.exec(readFileSync(new URL(`../../docs/guides/${guide}.md`, import.meta.url), "utf8")) ?? []
  const lines = programs.flatMap((code = "") => code.split("\n").filter((line) => line.trim() !== ""))
  assert.strictEqual(lines.length, Number(said))
  assert.isAtMost(lines.length, 40)
}

layer(withProject, { excludeTestServices: true, timeout: 120_000 })("The guides' programs", (it) => {
  it.effect("scenarios.md prints what its comments say", () =>
    Effect.gen(function* () {
      const { adminToken } = yield* TestServer
      const [service, ...programs] = blocksOf("docs/guides/scenarios.md").filter(({ language }) => language === "ts")
      const files = programs.map(({ code }, index) => [`${index}.ts`, code] as const)
      const path = yield* writeTo("scenarios", { "service.ts": service?.code, ...Object.fromEntries(files) })
      const env = { LICENSING_TOKEN: adminToken }
      const runs = yield* Effect.forEach(files, ([name]) => run(path, [name], env), { concurrency: 3 })
      for (const [index, { code, heading }] of programs.entries())
        assert.strictEqual(runs[index]?.said, printedBy(code), heading)
      assert.lengthOf(programs, 7)
    })
  )

  it.effect("electron.md activates from the page, keeps the license sealed, and runs again", () =>
    Effect.gen(function* () {
      const { license_key } = yield* (yield* Project).sell
      const [main, preload] = codes("applications/electron", "js")
      const [page] = codes("applications/electron", "html")
      assertLines("applications/electron", main, preload, page)
      const path = yield* writeTo("electron", { "main.mjs": main, "preload.cjs": preload, "index.html": page })
      const first = yield* run(path, ["main.mjs"], { USER_DATA: path, LICENSE_KEY: license_key })
      assert.deepStrictEqual(first, { code: 0, said: "ask: NOT_ACTIVATED\nrun: LICENSED\nrun: LICENSED\n" })
      assert.notInclude(readFileSync(join(path, "license"), "latin1"), license_key)
      const closed = { USER_DATA: path, LICENSING_URL: "http://127.0.0.1:9" }
      assert.deepStrictEqual(yield* run(path, ["main.mjs"], closed), { code: 0, said: "run: LICENSED\n" })
    })
  )

  it.effect("tauri.md activates in a web view whose origin is allowed, and else says which to allow", () =>
    Effect.gen(function* () {
      const { baseUrl } = yield* TestServer
      const { license_key } = yield* (yield* Project).sell
      const page = `import { openLicense } from "./license.js"
      const show = ({ decision, reason }) => console.log(decision, reason)
      const kit = await openLicense("${baseUrl}", show)
      const { problem } = await kit.activate("${license_key}")
      if (problem) console.log(problem.kind, problem.cause)
      document.dispatchEvent(new Event("visibilitychange"))
      window.dispatchEvent(new Event("online"))`
      const path = yield* writeTo("tauri", { "license.js": codes("applications/tauri", "js")[0], "page.js": page })
      const args = ["--conditions=browser", "--import", import.meta.resolve("./programs/webView.mjs"), "page.js"]
      const allowed = yield* run(path, args, { ORIGIN: origin })
      assert.deepStrictEqual(allowed, { code: 0, said: "ask NOT_ACTIVATED\nrun LICENSED\n" })
      const { said } = yield* run(path, args, { ORIGIN: "tauri://other" })
      assert.include(said, "network or cors")
      assert.include(said, "LICENSING_CORS_ORIGINS must have tauri://other")
    })
  )

  it.effect("cli.md activates, runs without asking, takes seats in CI, goes offline, and exits as it says", () =>
    Effect.gen(function* () {
      const { sell } = yield* Project
      const { connect } = yield* TestServer
      const { license_key } = yield* sell
      const [code] = codes("applications/cli", "js")
      assertLines("applications/cli", code)
      const path = yield* writeTo("cli", { "editor.mjs": code })
      const editor = (args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
        run(path, ["editor.mjs", ...args], { EDITOR_HOME: path, ...env })
      const worked = { code: 0, said: "The tool does its work here.\n" }
      const closed = { LICENSING_URL: "http://127.0.0.1:9" }
      const half = join(path, ".editor-license.new")
      writeFileSync(half, "half")

      assert.deepStrictEqual(yield* editor(["run"]), { code: 77, said: "editor: NOT_ACTIVATED\n" })
      assert.strictEqual((yield* editor(["activate", license_key], closed)).code, 75)
      assert.deepStrictEqual(yield* editor(["activate", license_key]), { code: 0, said: "" })
      assert.deepStrictEqual(yield* editor(["run"], closed), worked)

      const ci = { CI: "true", EDITOR_LICENSE_KEY: license_key }
      assert.deepStrictEqual(yield* editor(["run"], ci), worked)
      const { runtime } = yield* connect({ licenseKey: license_key })
      const { data: seat } = yield* runtime.checkout({ payload: { fingerprint: "another job" } })
      assert.strictEqual((yield* editor(["run"], ci)).code, 75)
      yield* runtime.checkin({ payload: { lease_token: seat.lease_token } })
      assert.deepStrictEqual(yield* editor(["run"], ci), worked)

      assert.deepStrictEqual(yield* editor(["deactivate"]), { code: 0, said: "" })
      assert.strictEqual((yield* editor(["run"])).code, 77)
      const { said: request } = yield* editor(["request"], closed)
      writeFileSync(join(path, "request.json"), request)
      yield* bash(path, codes("applications/cli", "sh").at(-1)!.replace("LK-…", license_key), {})
      assert.deepStrictEqual(yield* editor(["open", "license.json", license_key], closed), { code: 0, said: "" })
      assert.deepStrictEqual(yield* editor(["run"], closed), worked)
      assert.strictEqual(readFileSync(half, "utf8"), "half", "a text that another process is writing is changed")
    })
  )

  it.effect("floating-seats.md keeps its seat when it is killed, gives it back when it ends, and borrows", () =>
    Effect.gen(function* () {
      const { license_key } = yield* (yield* Project).sell
      const path = yield* writeTo("seats", { "seat.mjs": codes("floating-seats", "js")[0] })
      const seat = (machine: string, ...more: ReadonlyArray<string>) =>
        start(path, ["seat.mjs", license_key, ...more], { FINGERPRINT: machine, STORE: `${machine}.json` })
      const taken = {
        code: 0,
        errors: "",
        text: "ask NOT_ACTIVATED\nask FLOATING_LIMIT_REACHED\nAll 1 seats are taken (1): try again later.\n"
      }
      const one = yield* seat("one")
      yield* one.until(/runs here/)
      assert.deepStrictEqual(yield* Effect.flatMap(seat("two"), ({ end }) => end()), taken)
      yield* one.end("SIGKILL")
      assert.deepStrictEqual(yield* Effect.flatMap(seat("two"), ({ end }) => end()), taken)
      const again = yield* seat("one")
      yield* again.until(/runs here/)
      yield* again.end("SIGTERM")
      const two = yield* seat("two", "7")
      yield* two.until(/runs here/)
      yield* two.end("SIGTERM")
      assert.deepStrictEqual(yield* Effect.flatMap(seat("one"), ({ end }) => end()), taken)
    }).pipe(Effect.scoped)
  )

  it.effect("quotas.md counts jobs once, takes failed ones back, adds a pack, and bills the overage", () =>
    Effect.gen(function* () {
      const { adminToken } = yield* TestServer
      const { id, license_key } = yield* (yield* Project).sell
      const [credits, invoice] = codes("quotas", "js")
      const [use = "", topUp = "", bill = ""] = codes("quotas", "sh")
      const path = yield* writeTo("quotas", { "credits.mjs": credits, "invoice.mjs": invoice })
      const [command = "", ...printed] = use.trim().split("\n")
      const [, , , ...jobs] = command.split(" ")
      const { said } = yield* run(path, ["credits.mjs", license_key, ...jobs], {})
      assert.deepStrictEqual(
        said.trim().split("\n"),
        printed.map((line) => line.replace("# ", ""))
      )
      yield* bash(path, topUp, { LICENSE: id })
      const later = yield* run(path, ["credits.mjs", license_key, "job-5:50"], {})
      assert.include(later.said, "job-5: done; 1250 used, 0 left, 50 bought, 200 over")
      const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
      const billed = yield* run(path, ["invoice.mjs", day(-1), day(1)], { LICENSING_TOKEN: adminToken })
      assert.include(billed.said, `${id}: 1250 used, 50 from packs, 200 to bill\n`)
      assert.match(bill, /^node invoice.mjs \S+ \S+\n$/)
    })
  )

  it.effect("web-application.md sells to tenants, counts their exports, and hears of a suspension", () =>
    Effect.gen(function* () {
      const { adminToken, client } = yield* TestServer
      const { ids } = yield* Project
      const path = yield* writeTo("web", { "tenants.ts": codes("applications/web-application", "ts")[0] })
      const port = String(yield* freePort)
      const [webhook = ""] = codes("applications/web-application", "sh")
      const created = yield* bash(path, webhook.replace("127.0.0.1:3000", `127.0.0.1:${port}`), {})
      const { secret } = JSON.parse(created).data
      const given = { LICENSING_TOKEN: adminToken, PRODUCT_ID: ids.product_id, POLICY_ID: ids.policy_id }
      const back = yield* start(path, ["tenants.ts"], { ...given, PORT: port, WEBHOOK_SECRET: secret })
      yield* back.until(/ready/)
      const ask = (method: string, place: string) =>
        Effect.promise(async () => {
          const response = await fetch(`http://127.0.0.1:${port}/${place}`, { method })
          const { data, error } = (await response.json()) as { data?: Shown; error?: { readonly code: string } }
          const left = data?.features.find(({ code }) => code === "export")?.remaining
          return { status: response.status, id: data?.license_id ?? "", left, refused: error?.code }
        })
      const bought = yield* ask("POST", "tenants/acme")
      assert.strictEqual(bought.left, 2)
      assert.deepStrictEqual(yield* ask("POST", "tenants/acme"), bought)
      const lefts = yield* Effect.forEach(["one", "one", "two"], (id) => ask("POST", `tenants/acme/${id}`))
      assert.deepStrictEqual(
        lefts.map(({ left }) => left),
        [1, 1, 0]
      )
      assert.strictEqual((yield* ask("POST", "tenants/acme/three")).refused, "USAGE_LIMIT_EXCEEDED")
      assert.strictEqual((yield* ask("GET", "tenants/acme")).left, 0)
      assert.strictEqual((yield* ask("GET", "tenants/none")).status, 404)
      assert.strictEqual((yield* ask("POST", "hooks")).status, 400)
      yield* client.licenses.suspend({ params: { id: bought.id } })
      yield* back.until(/license\.suspended/)
      assert.strictEqual((yield* ask("GET", "tenants/acme")).refused, "LICENSE_SUSPENDED")
    }).pipe(Effect.scoped)
  )
})
