/**
 * The package that `npm pack` makes, unpacked into a fresh project: its content, its declarations, the code of the guides on Node and
 * on Deno, bundles for browsers, and the service that it starts. The project's dependencies are linked.
 */
import { spawn } from "node:child_process"
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { rolldown } from "rolldown"
import { run } from "../support/processes/BuiltOnce.ts"
import { freePort } from "../support/processes/FreePort.ts"
import { packed, unpack } from "../support/processes/Packed.ts"
import { tools } from "../support/processes/Tools.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const bin = (name: string) => join(root, "node_modules/.bin", name)
const minutes = 20 * 60_000

/** The compiler. Each further thread would check the declarations of all packages again. */
const tsc = (folder: string, ...args: ReadonlyArray<string>) => run(folder, bin("tsc"), ["--checkers", "1", ...args])

/** A project with the unpacked package and nothing else of its own. */
class Project extends Context.Service<
  Project,
  { readonly folder: string; readonly home: string; readonly archive: string; readonly files: ReadonlyArray<string> }
>()("licensing/test/Project") {
  static readonly layer = Layer.effect(
    Project,
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-package-"))),
        (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
      )
      // Started by root, the included database runs as another user.
      chmodSync(folder, 0o755)
      const home = join(folder, "node_modules/licensing-service")
      mkdirSync(home, { recursive: true })
      yield* unpack("package", home)
      for (const name of readdirSync(join(root, "node_modules"))) {
        if (!name.startsWith(".")) symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name))
      }
      writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }))
      const made = yield* packed
      const files: ReadonlyArray<string> = JSON.parse(readFileSync(join(made, "files.json"), "utf8"))
      return { folder, home, files, archive: join(made, "package.tgz") }
    }).pipe(Effect.orDie)
  )
}

/** What infra/package/check.mjs prints. */
interface Checked {
  readonly messages: ReadonlyArray<unknown>
  readonly types: unknown
  readonly problems: ReadonlyArray<{ readonly kind: string; readonly resolutionKind?: string }>
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
    ["node_modules/licensing-service/infra/package/licensing-service.mjs", "serve"],
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

/** The blocks of code of a guide. */
const blocks = (name: string): ReadonlyArray<string> =>
  [...readFileSync(join(root, "docs/guides", name), "utf8").matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code ?? "")

const bundled = (folder: string, code: string) =>
  Effect.promise(async () => {
    writeFileSync(join(folder, "entry.js"), code)
    const built = await rolldown({ input: join(folder, "entry.js"), platform: "browser", cwd: folder })
    try {
      const { output } = await built.generate({ format: "esm", minify: true, codeSplitting: false })
      return { code: output[0].code, modules: output[0].moduleIds, imports: output[0].imports }
    } finally {
      await built.close()
    }
  })

layer(Project.layer, { excludeTestServices: true, timeout: minutes })("The package", (it) => {
  it.effect("has what it needs and no tests", () =>
    Effect.gen(function* () {
      const { files } = yield* Project
      const built = ["main.js", "clients/client/Client.d.ts", "clients/kit/LicenseKit.js"]
      const wanted = [...built.map((path) => `dist/${path}`), "LICENSE", "README.md"]
      const added = [
        "dist/clients/console/index.html",
        "dist/clients/console/inter-license.txt",
        "dist/clients/portal/index.html",
        "dist/site/index.html",
        "dist/site/reference/licenses.html"
      ]
      const read = ["schema/migrations/0001_initial.sql", "schema/examples.json"]
      assert.includeMembers([...files], [...wanted, ...added, ...read])
      const isOther = (path: string) => !/^(dist|schema|infra\/package)\/|^[A-Z]+(\.md)?$|^package\.json$/.test(path)
      assert.deepStrictEqual(files.filter(isOther), [])
      assert.deepStrictEqual(
        // The site has a page about tests, and copies of files that pages lead to.
        files.filter((path) => !path.startsWith("dist/site/") && /test|(?<!\.d)\.ts$/.test(path)),
        []
      )
    })
  )

  it.effect("is clean by publint and by attw", () =>
    Effect.gen(function* () {
      const { archive, home } = yield* Project
      yield* tools("package")
      const { messages, problems, types }: Checked = JSON.parse(
        yield* run(root, process.execPath, ["infra/package/check.mjs", home, archive])
      )
      assert.deepStrictEqual(messages, [])
      assert.isNotFalse(types)
      // It is for modules, as the guides say: neither `require` nor TypeScript's first resolution concern it.
      const found = problems.filter(({ resolutionKind = "" }) => !/node10|node16-cjs/.test(resolutionKind))
      assert.deepStrictEqual(
        found.map(({ kind }) => kind),
        []
      )
    })
  )

  it.effect("compiles in a strict project, and the code of the guides does", () =>
    Effect.gen(function* () {
      const { folder } = yield* Project
      const [kit, application, ...others] = blocks("kit.md")
      const [shop, genuine] = blocks("effect-client.md")
      const nameOf = (code: string, at: number) => (code.includes("fileStore =") ? "store" : `kit${at}`)
      const more = Object.fromEntries(others.map((code, at) => [nameOf(code, at), code]))
      const files = { kit, application, shop, ...more, stripe: blocks("stripe.md")[0] }
      const all = { ...files, genuine: `${genuine}\nexport { isGenuine }\n` }
      for (const [name, code = ""] of Object.entries(all)) writeFileSync(join(folder, `${name}.ts`), code)
      const compilerOptions = {
        ...{ target: "esnext", module: "nodenext", strict: true, noEmit: true, exactOptionalPropertyTypes: true },
        ...{ allowImportingTsExtensions: true, types: ["node"], lib: ["esnext", "dom"], skipLibCheck: false }
      }
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }))
      yield* tsc(folder, "-p", ".")
      // The kit's own declarations need nothing but the browser's.
      const alone = { ...compilerOptions, types: [] }
      const names = `import { LicenseKit } from "licensing-service/kit"\nexport const open = LicenseKit.open\n`
      mkdirSync(join(folder, "alone"), { recursive: true })
      writeFileSync(join(folder, "alone/kit.ts"), names)
      writeFileSync(join(folder, "alone/tsconfig.json"), JSON.stringify({ compilerOptions: alone, include: ["*.ts"] }))
      yield* tsc(folder, "-p", "alone")
    })
  )

  it.effect("refuses code that asks for what the contract does not have", () =>
    Effect.gen(function* () {
      const { folder } = yield* Project
      mkdirSync(join(folder, "wrong"), { recursive: true })
      writeFileSync(
        join(folder, "wrong/wrong.ts"),
        `import type { Operations } from "licensing-service/client"
        declare const client: Operations
        client.createProduct({ payload: { name: "P", colour: "red" } })`
      )
      const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "esnext"]
      const { message } = yield* Effect.flip(tsc(folder, ...options, "wrong/wrong.ts", "--ignoreConfig"))
      assert.match(message, /'colour' does not exist in type/)
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
        import { LicenseKit, memoryStore } from "licensing-service/kit"
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

  it.effect("brings no server code into a browser's bundle", () =>
    Effect.gen(function* () {
      const { folder } = yield* Project
      const kit = yield* bundled(folder, `export { LicenseKit } from "licensing-service/kit"`)
      assert.isAtMost(gzipSync(kit.code).length, 10_240)
      assert.deepStrictEqual(kit.imports, [])
      const client = yield* bundled(folder, `export { Client, catchCode } from "licensing-service/client"`)
      assert.deepStrictEqual(client.imports, [])
      assert.deepStrictEqual(
        client.modules.filter((id) => /postgres|signing\/(?!PublicKey)|@effect|\/workers\/|Http\.js|node:/.test(id)),
        []
      )
      assert.notMatch(client.code, /SELECT |INSERT INTO|LICENSING_DATABASE_URL/)
      assert.isAtMost(gzipSync(client.code).length, 200_000)
    })
  )
})
