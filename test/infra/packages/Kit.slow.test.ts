/** The packages of the kit and of the typed client in fresh projects. `npm run packages:matrix` tries many more versions of tools. */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { rolldown } from "rolldown"
import { run } from "../../support/processes/BuiltOnce.ts"
import { archiveName, blocks, nameOf, packed, projectWith, tsc } from "../../support/processes/Packed.ts"
import { tools } from "../../support/processes/Tools.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const minutes = 10 * 60_000
const small = ["kit", "client"] as const

class Project extends Context.Service<Project, { readonly folder: string; readonly homes: Record<string, string> }>()(
  "licensing/test/Project"
) {
  static readonly layer = Layer.effect(
    Project,
    Effect.gen(function* () {
      const folder = yield* projectWith(...small)
      const homes = Object.fromEntries(small.map((name) => [name, join(folder, "node_modules", nameOf(name))]))
      return { folder, homes }
    })
  )
}

const read = (folder: string, name: string) => JSON.parse(readFileSync(join(folder, name), "utf8"))

const sha256 = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex")

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => statSync(join(folder, path)).isFile())

/** What infra/package/check.mjs prints. */
interface Checked {
  readonly messages: ReadonlyArray<unknown>
  readonly types: unknown
  readonly problems: ReadonlyArray<{ readonly kind: string; readonly resolutionKind?: string }>
}

const bundled = (folder: string, code: string, platform: "browser" | "node" = "browser") =>
  Effect.promise(async () => {
    writeFileSync(join(folder, "entry.js"), code)
    const built = await rolldown({ input: join(folder, "entry.js"), platform, cwd: folder, external: ["electron"] })
    try {
      const format = platform === "node" ? "cjs" : "esm"
      const { output } = await built.generate({ format, minify: true, codeSplitting: false })
      return { code: output[0].code, modules: output[0].moduleIds, imports: output[0].imports }
    } finally {
      await built.close()
    }
  })

const opened = `LicenseKit.open({ baseUrl: "http://127.0.0.1:9", productCode: "editor", trustPublishedKeys: true, keys: [],
  binding: { fingerprint: "f" }, store: memoryStore() }).then((kit) => console.log(kit.verdict.reason))`

/** The guide's files with Electron's own declarations, which come without its program. */
const compileElectron = Effect.fnUntraced(function* (folder: string) {
  yield* tools("package")
  const home = join(folder, "electron")
  mkdirSync(join(home, "node_modules"), { recursive: true })
  symlinkSync(join(root, "infra/package/node_modules/electron"), join(home, "node_modules/electron"))
  const [main = "", preload = ""] = blocks("applications/electron.md", "js")
  writeFileSync(join(home, "main.mjs"), main)
  writeFileSync(join(home, "preload.cjs"), preload)
  const compilerOptions = {
    ...{ target: "esnext", module: "nodenext", strict: true, noImplicitAny: false, noEmit: true, skipLibCheck: true },
    ...{ allowJs: true, checkJs: true, types: ["node"], lib: ["esnext", "dom"] }
  }
  writeFileSync(join(home, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.mjs", "*.cjs"] }))
  yield* tsc(home, "-p", ".")
})

layer(Project.layer, { excludeTestServices: true, timeout: minutes })("The kit and the client", (it) => {
  it.effect("say what they are made of, and need no other package", () =>
    Effect.gen(function* () {
      const { homes } = yield* Project
      for (const name of small) {
        const home = homes[name] ?? ""
        const manifest = read(home, "package.json")
        assert.hasAllKeys(
          { dependencies: {}, scripts: {}, ...manifest },
          [...Object.keys(manifest), "dependencies", "scripts"],
          "neither dependencies nor scripts"
        )
        assert.isUndefined(manifest.dependencies)
        assert.isUndefined(manifest.scripts)
        const { components, metadata, serialNumber } = read(home, "sbom.cdx.json")
        assert.strictEqual(metadata.component.purl, `pkg:npm/%40licensing-service/${name}@${manifest.version}`)
        assert.match(serialNumber, /^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
        assert.lengthOf(components, name === "kit" ? 0 : 1)
        const { predicate, subject } = read(home, "provenance.json")
        const files = filesBelow(home).filter((path) => path !== "provenance.json")
        assert.sameMembers(
          subject.map((one: { readonly name: string }) => one.name),
          [...files]
        )
        for (const { digest, name: path } of subject) assert.strictEqual(sha256(join(home, path)), digest.sha256, path)
        const { resolvedDependencies } = predicate.buildDefinition
        assert.isAbove(resolvedDependencies.length, 20)
        for (const { digest, name: path } of resolvedDependencies)
          assert.strictEqual(sha256(join(root, path)), digest.sha256, path)
        assert.includeMembers(files, ["LICENSE", "README.md", `dist/${name}.js`, `dist/${name}.d.ts`])
      }
    })
  )

  it.effect("are small: the kit has at most 30 kB, and its sources beside", () =>
    Effect.gen(function* () {
      const { homes } = yield* Project
      const dist = join(homes["kit"] ?? "", "dist")
      for (const name of ["kit.js", "kit.cjs"]) assert.isAtMost(statSync(join(dist, name)).size, 30_000, name)
      for (const name of readdirSync(dist).filter((path) => path.endsWith(".map"))) {
        for (const source of read(dist, name).sources) assert.isTrue(existsSync(join(dist, source)), source)
      }
      assert.isAtMost(gzipSync(readFileSync(join(dist, "kit.js"))).length, 10_240)
    })
  )

  it.effect("are clean by publint and by attw", () =>
    Effect.gen(function* () {
      const { homes } = yield* Project
      yield* tools("package")
      for (const name of small) {
        const archive = join(yield* packed(name), archiveName(name))
        const printed = yield* run(root, process.execPath, ["infra/package/check.mjs", homes[name] ?? "", archive])
        const { messages, problems, types }: Checked = JSON.parse(printed)
        assert.deepStrictEqual(messages, [])
        assert.isNotFalse(types)
        // Effect is for modules alone, so its client is.
        const kinds = problems.map(({ kind, resolutionKind }) => `${kind} ${resolutionKind}`)
        assert.deepStrictEqual(kinds, name === "client" ? ["CJSResolvesToESM node16-cjs"] : [])
      }
    })
  )

  it.effect("install without a warning, and the kit is imported and required", () =>
    Effect.gen(function* () {
      const { folder } = yield* Project
      const home = join(folder, "installed")
      mkdirSync(home)
      writeFileSync(join(home, "package.json"), JSON.stringify({ name: "fresh", private: true }))
      const archive = join(yield* packed("kit"), archiveName("kit"))
      const printed = yield* run(home, "sh", ["-c", `npm install --offline --loglevel=notice ${archive} 2>&1`])
      assert.match(printed, /added 1 package/)
      assert.notMatch(printed, /warn/i)
      writeFileSync(join(home, "a.mjs"), `import { LicenseKit, memoryStore } from "@licensing-service/kit"\n${opened}`)
      writeFileSync(
        join(home, "a.cjs"),
        `const { LicenseKit, memoryStore } = require("@licensing-service/kit")\n${opened}`
      )
      // The block's one annotation, which older versions of Node do not take.
      const [year = ""] = blocks("testing.md")
      writeFileSync(join(home, "year.mjs"), year.replace("(wanted: string)", "(wanted)"))
      assert.strictEqual((yield* run(home, process.execPath, ["year.mjs"])).trim(), "A year has passed.")
      const asked = `machineId({ product: "Editor" }).catch((problem) => console.log(problem.name))`
      writeFileSync(join(home, "b.mjs"), `import { machineId } from "@licensing-service/kit/machine-id"\n${asked}`)
      writeFileSync(join(home, "b.cjs"), `const { machineId } = require("@licensing-service/kit/machine-id")\n${asked}`)
      for (const file of ["b.mjs", "b.cjs"])
        assert.strictEqual((yield* run(home, process.execPath, [file])).trim(), "TypeError")
      for (const file of ["a.mjs", "a.cjs"])
        assert.strictEqual((yield* run(home, process.execPath, [file])).trim(), "NOT_ACTIVATED")
    })
  )

  it.effect("compile with the newest TypeScript and with 5.6, by each resolution", () =>
    Effect.gen(function* () {
      const { folder, homes } = yield* Project
      yield* tools("package")
      const home = join(folder, "compiled")
      mkdirSync(join(home, "node_modules/@licensing-service"), { recursive: true })
      symlinkSync(homes["kit"] ?? "", join(home, "node_modules/@licensing-service/kit"))
      const code = `import { LicenseKit, type Verdict } from "@licensing-service/kit"
      import { machineId } from "@licensing-service/kit/machine-id"
      export const id: Promise<string> = machineId({ product: "editor" })
      export const open = LicenseKit.open
      export const said = ({ decision }: Verdict): "run" | "warn" | "ask" | "stop" => decision\n`
      // A project without a type for modules: CommonJS.
      writeFileSync(join(home, "package.json"), "{}")
      for (const name of ["module.mts", "common.cts", "plain.ts"]) writeFileSync(join(home, name), code)
      const common = {
        strict: true,
        noEmit: true,
        target: "es2022",
        lib: ["es2022", "dom"],
        types: [],
        skipLibCheck: false
      }
      const earlier = join(root, "infra/package/node_modules/typescript/bin/tsc")
      const compile = Effect.fnUntraced(function* (resolution: object, include: ReadonlyArray<string>, old: boolean) {
        writeFileSync(
          join(home, "tsconfig.json"),
          JSON.stringify({ compilerOptions: { ...common, ...resolution }, include })
        )
        yield* old ? run(home, process.execPath, [earlier, "-p", "."]) : tsc(home, "-p", ".")
      })
      const all = ["*.mts", "*.cts", "*.ts"]
      yield* compile({ module: "nodenext" }, all, false)
      yield* compile({ module: "esnext", moduleResolution: "bundler" }, ["*.ts"], false)
      yield* compile({ module: "node16" }, all, true)
      yield* compile({ module: "commonjs", moduleResolution: "node10" }, ["*.ts"], true)
    })
  )

  it.effect("compile with the code of the guides, and refuse what the contract does not have", () =>
    Effect.gen(function* () {
      const { folder } = yield* Project
      const [kit, application, ...others] = blocks("kit.md")
      const [shop, genuine] = blocks("effect-client.md")
      const nameOfBlock = (code: string, at: number) => (code.includes("fileStore =") ? "store" : `kit${at}`)
      const [year, ahead] = blocks("testing.md")
      const more = Object.fromEntries(others.map((code, at) => [nameOfBlock(code, at), code]))
      const [tenants] = blocks("applications/web-application.md")
      const files = { kit, application, shop, year, ahead, ...more, tenants, stripe: blocks("stripe.md")[0] }
      const all = { ...files, genuine: `${genuine}\nexport { isGenuine }\n` }
      for (const [name, code = ""] of Object.entries(all)) writeFileSync(join(folder, `${name}.ts`), code)
      const compilerOptions = {
        ...{ target: "esnext", module: "nodenext", strict: true, noEmit: true, exactOptionalPropertyTypes: true },
        ...{ allowImportingTsExtensions: true, types: ["node"], lib: ["esnext", "dom"], skipLibCheck: false }
      }
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }))
      yield* tsc(folder, "-p", ".")
      yield* compileElectron(folder)
      mkdirSync(join(folder, "wrong"))
      writeFileSync(
        join(folder, "wrong/wrong.ts"),
        `import type { Operations } from "@licensing-service/client"
        declare const client: Operations
        client.createProduct({ payload: { name: "P", colour: "red" } })`
      )
      const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "esnext"]
      const { message } = yield* Effect.flip(tsc(folder, ...options, "wrong/wrong.ts", "--ignoreConfig"))
      assert.match(message, /'colour' does not exist in type/)
    })
  )

  it.effect("become bundles for browsers and for Electron's main process, without server code", () =>
    Effect.gen(function* () {
      const { folder } = yield* Project
      const kit = yield* bundled(folder, `export { LicenseKit } from "@licensing-service/kit"`)
      assert.isAtMost(gzipSync(kit.code).length, 10_240)
      assert.deepStrictEqual(kit.imports, [])
      // The browser's way imports nothing of Node.
      const browser = yield* bundled(folder, `export { machineId } from "@licensing-service/kit/machine-id"`)
      assert.deepStrictEqual(browser.imports, [])
      const main = `import { app } from "electron"\nimport { LicenseKit, memoryStore } from "@licensing-service/kit"\n${opened}\nvoid app`
      writeFileSync(join(folder, "main.cjs"), (yield* bundled(folder, main, "node")).code)
      mkdirSync(join(folder, "node_modules/electron"))
      writeFileSync(join(folder, "node_modules/electron/index.js"), "exports.app = {}")
      assert.strictEqual((yield* run(folder, process.execPath, ["main.cjs"])).trim(), "NOT_ACTIVATED")
      const client = yield* bundled(folder, `export { Client, catchCode } from "@licensing-service/client"`)
      assert.deepStrictEqual(client.imports, [])
      const own = client.modules.map((id) => dirname(id)).filter((id) => !/node_modules\/(effect|\.pnpm)/.test(id))
      assert.deepStrictEqual(
        own.filter((id) => /postgres|@effect/.test(id)),
        []
      )
      assert.notMatch(client.code, /SELECT |INSERT INTO|LICENSING_DATABASE_URL/)
      assert.isAtMost(gzipSync(client.code).length, 200_000)
    })
  )
})
