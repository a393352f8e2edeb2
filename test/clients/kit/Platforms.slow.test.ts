/**
 * The application kit on Deno and in headless Chromium, as a bundle: all published vectors, and a life with a running service. A
 * machine without Chromium skips its test and reports that.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { startServer, TestServer } from "../../support/http/TestServer.ts"
import { wholeChromium } from "../../support/processes/Chromium.ts"
import { tools } from "../../support/processes/Tools.ts"
import { type ScenarioInput, scenario, wantedWords } from "./Scenario.ts"
import type { TrialResult } from "./Trial.ts"
import { hostTrial } from "./TrialHost.ts"
import { vectors, wantedVerdicts } from "./Vectors.ts"

const minutes = 3 * 60_000

const scenarioAt = Effect.fnUntraced(function* (fingerprint: string, at?: string) {
  const { baseUrl: own, client } = yield* TestServer
  const baseUrl = at ?? own
  const license = yield* issue({ max_floating_users: 1 })
  const params = { id: license.product_id }
  const feature = yield* client.features.create({ params, payload: { name: "Export", code: "export" } })
  yield* client.licenses.assignFeature({
    params: { id: license.id },
    payload: { feature_id: feature.id, max_consumptions: 10 }
  })
  const { code } = yield* client.products.get({ params })
  const keys = (yield* client.system.listPublicKeys()).items as ScenarioInput["keys"]
  return {
    baseUrl,
    ...(at !== undefined && { closedUrl: own }),
    productCode: code,
    licenseKey: license.license_key,
    keys,
    fingerprint
  }
})

const trialAt = (fingerprint: string, at?: string) =>
  Effect.map(scenarioAt(fingerprint, at), (input) => ({ vectors, scenario: input }))

/** A temporary folder that the scope removes. */
const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-kit-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** A process that the scope ends, with what it wrote to stderr. */
const start = (program: string, args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(program, args, {
        stdio: ["ignore", "ignore", "pipe"],
        env: { ...process.env, DENO_NO_UPDATE_CHECK: "1" }
      })
      const written: Array<string> = []
      child.stderr.on("data", (chunk) => written.push(String(chunk)))
      const ended = new Promise<string>((resolve) => child.once("close", () => resolve(written.join(""))))
      return { child, ended }
    }),
    ({ child, ended }) => {
      child.kill("SIGKILL")
      return Effect.promise(() => ended)
    }
  )

/** The result, or an error if the process ends without one. */
const resultOf = (result: Effect.Effect<TrialResult>, ended: Promise<string>) =>
  Effect.raceFirst(
    result,
    Effect.flatMap(
      Effect.promise(() => ended),
      (written) => Effect.die(new Error(`It ended without a result: ${written}`))
    )
  )

const assertRight = ({ verdicts, words }: TrialResult, more: ReadonlyArray<string> = []) => {
  assert.deepStrictEqual(verdicts.toSorted(), wantedVerdicts().toSorted())
  assert.deepStrictEqual(words, [...wantedWords, ...more])
}

layer(TestServer.layer, { timeout: minutes })("The application kit", (it) => {
  it.effect("lives with a running service on Node", () =>
    Effect.gen(function* () {
      const input = yield* scenarioAt("node")
      assert.deepStrictEqual(yield* Effect.promise(() => scenario(input)), wantedWords)
    })
  )

  it.effect(
    "gives every vector its verdict and lives with a running service on Deno",
    () =>
      Effect.gen(function* () {
        const host = yield* hostTrial(() => trialAt("deno"))
        const home = yield* folder
        writeFileSync(join(home, "trial.js"), host.code)
        writeFileSync(
          join(home, "run.js"),
          `import { trialOver } from "./trial.js"\nawait trialOver(${JSON.stringify(host.url)})\n`
        )
        // The kit needs the network alone.
        const { ended } = yield* start(join(yield* tools("deno"), "deno"), [
          "run",
          "--no-config",
          "--no-prompt",
          "--allow-net=127.0.0.1",
          join(home, "run.js")
        ])
        assertRight(yield* resultOf(host.result, ended))
      }).pipe(Effect.scoped),
    minutes
  )

  it.effect(
    "gives every vector its verdict and lives with a running service in Chromium",
    ({ skip }) =>
      Effect.gen(function* () {
        const chromium = yield* Effect.promise(wholeChromium)
        if (chromium === undefined) return skip("this machine lacks chromium")
        const host = yield* hostTrial((page) =>
          // The page has another origin than the service.
          Effect.flatMap(startServer({ corsOrigins: [page] }), ({ baseUrl }) => trialAt("chromium", baseUrl))
        )
        const home = yield* folder
        const flags = [
          "--headless=new",
          "--no-sandbox",
          "--disable-gpu",
          "--disable-dev-shm-usage",
          `--user-data-dir=${home}`
        ]
        const { ended } = yield* start(chromium, [...flags, "--remote-debugging-port=0", host.url])
        assertRight(yield* resultOf(host.result, ended), ["closed: network or cors"])
      }).pipe(Effect.scoped),
    minutes
  )
})
