/**
 * The verifiers of docs/verifying/: each prints the published verdict of every test vector, and believes a running service. A
 * machine without a language's tools skips its tests and reports that. Nothing is downloaded.
 */
import { execFile } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { TestContext } from "vitest"
import { assertAnswered } from "../support/http/Http.ts"
import { issue } from "../support/http/IssuedLicenses.ts"
import { TestServer } from "../support/http/TestServer.ts"
import { type Command, type Language, languagesIn, vectorFolder, wantedLines } from "./Languages.ts"

/** Compilers on a busy machine take a while. */
const minutes = 4 * 60_000

const environment = { ...process.env, GOPROXY: "off", GOTOOLCHAIN: "local", CARGO_NET_OFFLINE: "true" }

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

/** The vectors with one verdict turned around. */
const wrongVectors = (folder: string): string => {
  const copy = join(folder, "wrong-vectors")
  cpSync(vectorFolder, copy, { recursive: true })
  const path = join(copy, "responses.json")
  const file = JSON.parse(readFileSync(path, "utf8"))
  Object.assign(file.vectors[0], { verdict: "distrust", rule: "kind" })
  writeFileSync(path, JSON.stringify(file))
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

layer(Layer.merge(Builds.layer, TestServer.layer), { excludeTestServices: true, timeout: minutes })(
  "docs/verifying",
  (it) => {
    for (const { name } of languagesIn("")) {
      it.effect(
        `${name}: every vector has its published verdict`,
        (context) =>
          Effect.gen(function* () {
            const program = yield* programOf(context, name)
            const { code, error, out } = yield* run([...program, "vectors", vectorFolder])
            const lines = out.trimEnd().split(/\r?\n/)
            assert.strictEqual(lines.pop(), "0 differences", error)
            assert.deepStrictEqual(lines.toSorted(), wantedLines().toSorted())
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
            assert.match(out, /\n1 differences\s*$/)
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
    }
  }
)
