/**
 * The service's package, unpacked into a fresh project: its content, the service that it starts, and the code of the guides with it on
 * Node and on Deno. The project's dependencies are linked.
 */
import { spawn } from "node:child_process"
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { run } from "../../support/processes/BuiltOnce.ts"
import { freePort } from "../../support/processes/FreePort.ts"
import { archiveName, blocks, nameOf, packed, projectWith } from "../../support/processes/Packed.ts"
import { tools } from "../../support/processes/Tools.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const minutes = 20 * 60_000

class Project extends Context.Service<Project, { readonly folder: string; readonly home: string }>()(
  "licensing/test/Project"
) {
  static readonly layer = Layer.effect(
    Project,
    Effect.gen(function* () {
      const folder = yield* projectWith("kit", "client", "service")
      // Started by root, the included database runs as another user.
      chmodSync(folder, 0o755)
      return { folder, home: join(folder, "node_modules", nameOf("service")) }
    })
  )
}

const token = "package-token-of-more-than-32-characters"

/** A process that the scope ends, once its output says that it is there. */
const started = (folder: string, args: ReadonlyArray<string>, env: Record<string, string>, sign: RegExp) =>
  Effect.gen(function* () {
    const { child, said } = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const child = spawn(process.execPath, args, { cwd: folder, env: { PATH: process.env["PATH"], ...env } })
        return { child, said: { text: "" } }
      }),
      ({ child }) =>
        Effect.callback<void>((resume) => {
          if (child.exitCode !== null) return resume(Effect.void)
          child.once("exit", () => resume(Effect.void))
          child.kill("SIGTERM")
        })
    )
    yield* Effect.callback<void>((resume) => {
      const hear = (chunk: unknown) => {
        said.text += chunk
        if (sign.test(said.text)) resume(Effect.void)
      }
      child.stdout.on("data", hear)
      child.stderr.on("data", hear)
      child.once("exit", () => resume(Effect.die(new Error(said.text))))
    })
  })

/** The service of the package, with the included database. */
const service = Effect.gen(function* () {
  const { folder } = yield* Project
  const port = String(yield* freePort)
  yield* started(
    folder,
    ["node_modules/licensing-service/bin/licensing-service.mjs", "serve"],
    { LICENSING_PORT: port, LICENSING_BOOTSTRAP_TOKEN: token, LICENSING_LOG_FORMAT: "json" },
    /"api":"http/
  )
  const baseUrl = `http://127.0.0.1:${port}`
  const manage = (path: string, body: object) =>
    Effect.promise(async () => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
      const answer = await fetch(`${baseUrl}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) })
      return ((await answer.json()) as { readonly data: { readonly id: string } }).data.id
    })
  const product = yield* manage("/products", { name: "Editor", code: "editor-pro" })
  const policy = yield* manage(`/products/${product}/policies`, { name: "P", code: "p", license_type: "perpetual" })
  return { baseUrl, product, policy }
})

layer(Project.layer, { excludeTestServices: true, timeout: minutes })("The service's package", (it) => {
  it.effect("has what it needs and no tests, and is clean by publint", () =>
    Effect.gen(function* () {
      const { home } = yield* Project
      const files = readdirSync(home, { recursive: true, encoding: "utf8" }).filter((path) =>
        statSync(join(home, path)).isFile()
      )
      const built = ["main.js", "clients/console/index.html", "clients/console/inter-license.txt"]
      const pages = ["clients/portal/index.html", "site/index.html", "site/reference/licenses.html"]
      const papers = ["LICENSE", "README.md", "CHANGELOG.md", "sbom.cdx.json", "provenance.json", "package.json"]
      const wanted = [...built, ...pages].map((path) => `dist/${path}`)
      const data = ["schema/migrations/0001_initial.sql", "schema/examples.json"]
      assert.includeMembers(files, [...wanted, ...papers, ...data])
      assert.deepStrictEqual(
        files.filter((path) => !/^(dist|schema|bin)\//.test(path) && !papers.includes(path)),
        []
      )
      assert.deepStrictEqual(
        // The site has a page about tests, and copies of files that pages lead to.
        files.filter((path) => !path.startsWith("dist/site/") && /test|\.ts$/.test(path)),
        []
      )
      const { components } = JSON.parse(readFileSync(join(home, "sbom.cdx.json"), "utf8"))
      const named = components.map(({ name }: { readonly name: string }) => name)
      assert.includeMembers(named, ["effect", "jose", "pdfkit"])
      for (const name of ["vitest", "typescript", "node"]) assert.notInclude(named, name)
      yield* tools("package")
      const archive = join(yield* packed("service"), archiveName("service"))
      const { messages } = JSON.parse(yield* run(root, process.execPath, ["infra/package/check.mjs", home, archive]))
      assert.deepStrictEqual(messages, [])
    })
  )

  it.effect(
    "starts the service, and the guides' code works with it on Node and on Deno",
    () =>
      Effect.gen(function* () {
        const { folder } = yield* Project
        const { baseUrl, policy, product } = yield* service
        const port = String(yield* freePort)
        writeFileSync(join(folder, "shop.ts"), blocks("effect-client.md")[0] ?? "")
        const env = { LICENSING_URL: baseUrl, LICENSING_TOKEN: token, POLICY_ID: policy, PORT: port }
        yield* started(folder, ["shop.ts"], env, /Listening on/i)
        const buy = (order: string, given = product) =>
          Effect.promise(async () => {
            const body = JSON.stringify({ order, product: given, email: "ada@example.com" })
            const headers = { "content-type": "application/json" }
            const answer = await fetch(`http://127.0.0.1:${port}/purchases`, { method: "POST", headers, body })
            return { status: answer.status, body: (await answer.json()) as Record<string, string> }
          })
        const first = yield* buy("1")
        assert.strictEqual(first.status, 201)
        assert.deepStrictEqual((yield* buy("1")).body, first.body)
        assert.notStrictEqual((yield* buy("2")).body["id"], first.body["id"])
        assert.deepStrictEqual(yield* buy("3", "prod_none"), { status: 422, body: { unknown: "product_id" } })
        const sold = yield* Effect.promise(() =>
          fetch(`http://127.0.0.1:${port}/purchases`).then((answer) => answer.json())
        )
        assert.lengthOf(sold as ReadonlyArray<unknown>, 2)
        const page = yield* Effect.promise(() => fetch(`${baseUrl}/console`).then((answer) => answer.text()))
        assert.include(page, "/console/assets/")
        const docs = yield* Effect.promise(() =>
          fetch(`${baseUrl}/docs/guides/kit.html`).then((answer) => answer.text())
        )
        assert.include(docs, "/docs/assets/")
        const life = `
        import { LicenseKit, memoryStore } from "@licensing-service/kit"
        const [baseUrl, key, fingerprint] = process.argv.slice(2)
        const { data: keys } = await (await fetch(baseUrl + "/api/v1/system/public-keys")).json()
        const options = { baseUrl, productCode: "editor-pro", keys, binding: { fingerprint }, store: memoryStore() }
        const kit = await LicenseKit.open(options)
        const { decision, granted, reason } = await kit.activate(key)
        await kit.deactivate()
        console.log([granted, decision, reason].join(" "))`
        writeFileSync(join(folder, "life.mjs"), `import process from "node:process"\n${life}`)
        const args = [baseUrl, first.body["license_key"] ?? ""]
        assert.strictEqual(
          (yield* run(folder, process.execPath, ["life.mjs", ...args, "node"])).trim(),
          "true run LICENSED"
        )
        const [, quick = ""] = /```js\n(.*?)```/s.exec(readFileSync(join(root, "docs/guides/kit.md"), "utf8")) ?? []
        writeFileSync(join(folder, "editor.mjs"), quick)
        const said = yield* run(folder, process.execPath, [
          "editor.mjs",
          baseUrl,
          (yield* buy("2")).body["license_key"] ?? ""
        ])
        assert.strictEqual(said.trim(), "true run LICENSED")
        const deno = join(yield* tools("deno"), "deno")
        const denoArgs = [
          "run",
          "--no-prompt",
          "--node-modules-dir=manual",
          "--allow-net=127.0.0.1",
          "life.mjs",
          ...args,
          "deno"
        ]
        assert.strictEqual((yield* run(folder, deno, denoArgs)).trim(), "true run LICENSED")
      }).pipe(Effect.scoped),
    minutes
  )
})
