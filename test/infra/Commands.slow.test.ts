/**
 * Executes the commands of README.md twice in a fresh folder, and those of docs/WEBHOOKS.md, "In five minutes". `npm ci` and `npm test`
 * are steps of .ci/run; here the folder gets the packages that are installed.
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { clone, execute, running, shell } from "../support/processes/Checkout.ts"
import { freePort } from "../support/processes/FreePort.ts"

const minutes = 4 * 60_000

it.live(
  "README.md: its commands issue a license and verify its signature, in a first run and in a second",
  () =>
    Effect.gen(function* () {
      const folder = yield* clone
      const port = yield* freePort
      const [start = "", tests = "", ...steps] = shell("README.md")
      assert.strictEqual(start, "npm ci && npm start\n")
      assert.strictEqual(tests, "npm ci && npm test\n")
      const settings = { LICENSING_PORT: String(port), LICENSING_LOG_FORMAT: "pretty" }
      const script = (token: string) =>
        steps
          .join("\n")
          .replace("TOKEN=…", `TOKEN=${token}`)
          .replaceAll("127.0.0.1:8080", `127.0.0.1:${port}`)
          .replaceAll("/tmp/", `${folder}/`)
      let token = ""
      for (const _ of ["first", "second"]) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            // Only the first start has a token to show.
            const sign = token === "" ? /lsm_\S+\n/ : /The licensing service is ready/
            const { said } = yield* running(folder, "npm start", settings, sign)
            token ||= /Admin token, shown until it is used: (\S+)/.exec(said.text)?.[1] ?? ""
            assert.match(execute(folder, script(token)), /^genuine: a response of the kind entitlement$/m)
          })
        )
      }
      const rescue = execute(folder, "npx node src/main.ts --version")
      assert.isNotEmpty(rescue)
    }).pipe(Effect.scoped),
  minutes
)

it.live(
  "docs/WEBHOOKS.md: a receiver on this machine gets the first delivery",
  () =>
    Effect.gen(function* () {
      const folder = yield* clone
      const [port, receiver] = [yield* freePort, yield* freePort]
      const [programs = "", create = ""] = shell("docs/WEBHOOKS.md").map((code) =>
        code.replaceAll("8080", String(port)).replaceAll("4242", String(receiver))
      )
      const [serve = "", listen = ""] = programs.trim().split("\n")
      const token = "documented-token-of-more-than-32-characters"
      const settings = { LICENSING_PORT: String(port), LICENSING_BOOTSTRAP_TOKEN: token }
      yield* running(folder, `env ${serve}`, settings, /ready/)
      const { until } = yield* running(folder, listen, {}, /Listening on/)
      assert.include(execute(folder, `TOKEN=${token}\n${create}`), '"secret":"whsec_')
      yield* until(/webhook\.created/)
    }).pipe(Effect.scoped),
  minutes
)
