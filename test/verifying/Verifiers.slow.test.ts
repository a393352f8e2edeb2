/**
 * The verifiers and kits of docs/clients/: each prints the published verdict of every test vector, and uses a running service. A
 * machine without a language's tools skips its tests and reports that. Nothing is downloaded.
 */
import { execFile } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { TestContext } from "vitest"
import { assertAnswered } from "../support/http/Http.ts"
import { issue } from "../support/http/IssuedLicenses.ts"
import { TestServer } from "../support/http/TestServer.ts"
import { blocksOf } from "../support/processes/DocumentBlocks.ts"
import { hostileServer } from "./Hostile.ts"
import {
  type Command,
  kitLines,
  type Language,
  languagesIn,
  livedWords,
  vectorFolder,
  wantedLines
} from "./Languages.ts"

/** Compilers on a busy machine take a while. */
const minutes = 4 * 60_000

const root = fileURLToPath(new URL("../..", import.meta.url))

const environment = {
  ...process.env,
  ...{ GOPROXY: "off", GOTOOLCHAIN: "local", CARGO_NET_OFFLINE: "true" },
  // For programs of a second the optimizing compiler takes longer than it saves.
  JAVA_TOOL_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
}

const run = ([program, ...args]: Command) =>
  Effect.callback<{ readonly code: number; readonly out: string; readonly error: string }>((resume) => {
    execFile(program, args, { env: environment, maxBuffer: 2 ** 24, timeout: minutes }, (failure, out, error) => {
      const code = failure === null ? 0 : typeof failure.code === "number" ? failure.code : -1
      resume(Effect.succeed({ code, out, error: error + (failure?.message ?? "") }))
    })
  })

/** A folder for what is built, and the languages that were built there. */
class Builds extends Context.Service<Builds, { readonly folder: string; readonly built: Set<string> }>()(
  "licensing/test/Builds"
) {
  static readonly layer = Layer.effect(
    Builds,
    Effect.acquireRelease(
      Effect.sync(() => ({ folder: mkdtempSync(join(tmpdir(), "licensing-verifiers-")), built: new Set<string>() })),
      ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
  )
}

/** Licenses of the product editor-pro, which the quick starts have. */
class Editor extends Context.Service<Editor, { readonly licenseKey: Effect.Effect<string> }>()(
  "licensing/test/Editor"
) {
  static readonly layer = Layer.effect(
    Editor,
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { id: product_id } = yield* client.products.create({ payload: { name: "Editor", code: "editor-pro" } })
      const payload = { name: "Standard", code: "standard", license_type: "perpetual" } as const
      const { id: policy_id } = yield* client.policies.create({ params: { id: product_id }, payload })
      const issued = client.licenses.create({ payload: { product_id, policy_id } })
      return { licenseKey: Effect.orDie(Effect.map(issued, ({ license_key }) => license_key)) }
    })
  )
}

/** The language's program, built once; skips the test on a machine that can not build it. */
const programOf = Effect.fnUntraced(function* ({ skip }: TestContext, name: string) {
  const { built, folder } = yield* Builds
  const language = languagesIn(folder).find((one) => one.name === name) as Language
  if (built.has(name)) return language.run
  const probed = yield* run(language.probe)
  if (probed.code !== 0) return skip(`this machine lacks ${language.needs}`)
  for (const command of language.builds) {
    const { code, error } = yield* run(command)
    assert.strictEqual(code, 0, error)
  }
  built.add(name)
  return language.run
})

interface VectorFile {
  readonly vectors?: ReadonlyArray<object>
  readonly scenarios?: ReadonlyArray<{ readonly steps: ReadonlyArray<{ readonly expected: object }> }>
}

/** The vectors with one verdict and one decision turned around. */
const wrongVectors = (folder: string): string => {
  const copy = join(folder, "wrong-vectors")
  cpSync(vectorFolder, copy, { recursive: true })
  const change = (name: string, by: (file: VectorFile) => void) => {
    const path = join(copy, `${name}.json`)
    const file = JSON.parse(readFileSync(path, "utf8"))
    by(file)
    writeFileSync(path, JSON.stringify(file))
  }
  change("responses", ({ vectors }) => Object.assign(vectors?.[0] ?? {}, { verdict: "distrust", rule: "kind" }))
  change("decisions", ({ scenarios }) => Object.assign(scenarios?.[0]?.steps[0]?.expected ?? {}, { decision: "run" }))
  return copy
}

interface Call {
  readonly product?: string
  readonly kid?: string
  readonly envelope?: string
}

/** A license for one machine, and calls of the program with its key. */
const licensed = Effect.fnUntraced(function* (program: Command) {
  const { baseUrl, client, send } = yield* TestServer
  const license = yield* issue({ max_activations: 1 })
  const { code } = yield* client.products.get({ params: { id: license.product_id } })
  const [key] = (yield* client.system.listPublicKeys()).items
  const published = key as { readonly kid: string; readonly public_key: string }
  const call = Effect.fnUntraced(function* (fingerprint: string, { envelope, kid, product }: Call = {}) {
    const given = [product ?? code, fingerprint, kid ?? published.kid, published.public_key]
    const envelopes = envelope === undefined ? [] : [envelope]
    const { out } = yield* run([...program, "call", baseUrl, license.license_key, ...given, ...envelopes])
    return out.trim().split(/\r?\n/)
  })
  const offline = Effect.fnUntraced(function* (fingerprint: string) {
    const path = "/api/v1/license/offline"
    const headers = { authorization: `License ${license.license_key}` }
    const answer = yield* send({ method: "POST", path, headers, body: { fingerprint } })
    return JSON.stringify(assertAnswered(answer, 200))
  })
  return { call, offline }
})

/** A license with a metered feature and a seat, a place for the store, and the program's life with them. */
const lived = Effect.fnUntraced(function* (program: Command, name: string) {
  const { baseUrl, client } = yield* TestServer
  const license = yield* issue({ max_floating_users: 1 })
  const params = { id: license.product_id }
  const { id: feature_id } = yield* client.features.create({ params, payload: { name: "Export", code: "export" } })
  yield* client.licenses.assignFeature({ params: { id: license.id }, payload: { feature_id, max_consumptions: 10 } })
  const trial = { name: "Trial", code: "trial", license_type: "trial", duration_days: 14, public_trial: true } as const
  yield* client.policies.create({ params, payload: trial })
  const { code } = yield* client.products.get({ params })
  const [key] = (yield* client.system.listPublicKeys()).items
  const { kid, public_key } = key as { readonly kid: string; readonly public_key: string }
  const hostile = yield* hostileServer
  const folder = join((yield* Builds).folder, `stores of ${name}`)
  mkdirSync(folder)
  const store = join(folder, "license.json")
  // Another process of the application is writing the same store.
  writeFileSync(`${store}.new`, "half")
  const given = [license.license_key, code, `machine of ${name}`, kid, public_key, store]
  const { error, out } = yield* run([...program, "live", baseUrl, hostile.url, ...given])
  return { error, words: out.trimEnd().split(/\r?\n/), stolen: hostile.stolen, store, files: readdirSync(folder) }
})

/** Each kit's page in docs/clients/, the language of its program, and the program's file. */
const quickStarts: { readonly [name: string]: readonly [page: string, language: string, file: string] } = {
  Python: ["python", "python", "editor.py"],
  Go: ["go", "go", "main.go"],
  Java: ["java", "java", "Editor.java"],
  "C#": ["csharp", "csharp", "Editor.cs"],
  "C++": ["cpp", "cpp", "editor.cpp"]
}

/** What the quick start of a page prints, with a license of the product editor-pro, and what the page says that it prints. */
const quickStart = Effect.fnUntraced(function* (name: string) {
  const { baseUrl } = yield* TestServer
  const [page, language, file] = quickStarts[name] ?? assert.fail(`${name} has no quick start`)
  const path = `docs/clients/${page}.md`
  const blocks = blocksOf(path).filter(({ heading }) => heading === "Quick start")
  const codeOf = (wanted: string) => blocks.find((block) => block.language === wanted)?.code ?? assert.fail(path)
  const folder = join((yield* Builds).folder, `quick start ${page}`)
  mkdirSync(folder)
  writeFileSync(join(folder, file), codeOf(language))
  const key = yield* (yield* Editor).licenseKey
  const commands = codeOf("sh").replace("http://127.0.0.1:8080", baseUrl).replace("LK-…", key)
  const { error, out } = yield* run(["bash", "-ec", `cd "${folder}" && export CHECKOUT="${root}" && ${commands}`])
  const [, wanted] = /^It prints `(.+)`\.$/m.exec(readFileSync(`${root}/${path}`, "utf8")) ?? []
  return { error, printed: out.trim(), wanted }
})

layer(Layer.merge(Builds.layer, Layer.provideMerge(Editor.layer, TestServer.layer)), {
  excludeTestServices: true,
  timeout: minutes
})("docs/clients", (it) => {
  for (const { hasKit, name } of languagesIn("")) {
    it.effect(
      `${name}: every vector has its published verdict`,
      (context) =>
        Effect.gen(function* () {
          const program = yield* programOf(context, name)
          const { code, error, out } = yield* run([...program, "vectors", vectorFolder])
          const lines = out.trimEnd().split(/\r?\n/)
          assert.strictEqual(lines.pop(), "0 differences", error)
          const wanted = hasKit ? [...wantedLines(), ...kitLines()] : wantedLines()
          assert.deepStrictEqual(lines.toSorted(), wanted.toSorted())
          assert.strictEqual(code, 0)
        }),
      minutes
    )

    it.effect(
      `${name}: a difference is printed, and the exit code is 1`,
      (context) =>
        Effect.gen(function* () {
          const program = yield* programOf(context, name)
          const { code, out } = yield* run([...program, "vectors", wrongVectors((yield* Builds).folder)])
          assert.include(out, "responses: an entitlement: believe, but it should be kind")
          assert.strictEqual(out.trimEnd().split(/\r?\n/).at(-1), `${hasKit ? 2 : 1} differences`)
          assert.strictEqual(code, 1)
        }),
      minutes
    )

    it.effect(
      `${name}: activates, validates and opens an offline envelope of a running service`,
      (context) =>
        Effect.gen(function* () {
          const program = yield* programOf(context, name)
          const { call, offline } = yield* licensed(program)
          const [mine, other] = ['a "machine" ž', "another machine"]
          assert.deepStrictEqual(yield* call(mine), ["activate: data active", "validate: data active"])
          const envelope = yield* offline(mine)
          assert.strictEqual((yield* call(mine, { envelope }))[2], "open_offline: data active")
          assert.deepStrictEqual(yield* call(other, { envelope }), [
            "activate: error ACTIVATION_LIMIT_REACHED",
            "validate: error DEVICE_NOT_FOUND",
            "open_offline: distrusted binding"
          ])
          assert.deepStrictEqual(yield* call(mine, { envelope, product: "another" }), [
            "activate: error PRODUCT_MISMATCH",
            "validate: error PRODUCT_MISMATCH",
            "open_offline: distrusted product"
          ])
          assert.deepStrictEqual(yield* call(mine, { envelope, kid: "0".repeat(16) }), [
            "activate: distrusted kid",
            "validate: distrusted kid",
            "open_offline: distrusted kid"
          ])
        }),
      minutes
    )

    if (hasKit === undefined)
      it.effect(
        `${name}: takes the license key to no other server`,
        (context) =>
          Effect.gen(function* () {
            const program = yield* programOf(context, name)
            const { stolen, url } = yield* hostileServer
            const given = ["LK-SECRET", "editor-pro", "a machine", "0".repeat(16), `${"A".repeat(43)}=`]
            const { out } = yield* run([...program, "call", `${url}/redirect`, ...given])
            assert.strictEqual(out.trim(), "activate: distrusted signature\nvalidate: distrusted signature")
            assert.deepStrictEqual(stolen, [])
          }).pipe(Effect.scoped),
        minutes
      )

    if (hasKit)
      it.effect(
        `${name}: the kit uses a running service, and believes no other server`,
        (context) =>
          Effect.gen(function* () {
            const program = yield* programOf(context, name)
            const { error, files, stolen, store, words } = yield* lived(program, name)
            assert.deepStrictEqual(words, livedWords, error)
            assert.deepStrictEqual(stolen, [])
            assert.strictEqual(statSync(store).mode & 0o077, 0, "others can read the license key")
            assert.sameMembers(files, ["license.json", "license.json.new"])
            assert.strictEqual(readFileSync(`${store}.new`, "utf8"), "half", "another process's text is changed")
            assert.notMatch(error, /LK-/)
          }).pipe(Effect.scoped),
        minutes
      )

    if (hasKit)
      it.effect(
        `${name}: the quick start of its page validates a license`,
        (context) =>
          Effect.gen(function* () {
            yield* programOf(context, name)
            const { error, printed, wanted } = yield* quickStart(name)
            assert.strictEqual(printed, wanted, error)
          }),
        minutes
      )
  }
})
