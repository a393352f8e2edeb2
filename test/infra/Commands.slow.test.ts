/**
 * Executes the commands of README.md twice in a fresh folder, and those of docs/WEBHOOKS.md, "In five minutes". `npm ci` is the first
 * step of .ci/run; here the folder gets the packages that are installed.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { chmodSync, cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { blocksOf } from "../support/DocumentBlocks.ts"

const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "")
const minutes = 4 * 60_000

const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address() as { readonly port: number }
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** The project as a clone has it, with its packages. */
const clone = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "licensing-clone-"))
    // Started by root, the included database runs as another user.
    chmodSync(folder, 0o755)
    const options = { cwd: root, encoding: "utf8" } as const
    const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], options)
    for (const name of files.trim().split("\n")) {
      if (/^(src|schema|infra|package\.json|package-lock\.json|\.npmrc)/.test(name))
        cpSync(join(root, name), join(folder, name))
    }
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A command that runs until the scope ends; waits until its output matches, and gives what it wrote until then. */
const running = (folder: string, command: string, env: Record<string, string>, sign: RegExp) =>
  Effect.gen(function* () {
    const said = { text: "" }
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn("bash", ["-c", `exec ${command}`], { cwd: folder, env: { ...environment(), ...env }, detached: true })
      ),
      (started) =>
        Effect.callback<void>((resume) => {
          if (started.exitCode !== null) return resume(Effect.void)
          started.once("close", () => resume(Effect.void))
          // npm and the service: a terminal's Ctrl-C reaches both.
          process.kill(-started.pid!, "SIGINT")
        })
    )
    const until = (wanted: RegExp) =>
      Effect.callback<string>((resume) => {
        const look = () => wanted.test(said.text) && resume(Effect.succeed(said.text))
        for (const stream of [child.stdout, child.stderr]) stream.on("data", look)
        child.once("exit", () => resume(Effect.die(new Error(said.text))))
        look()
      })
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => {
        said.text += chunk
      })
    yield* until(sign)
    return { said, until }
  })

/** Without the settings of the one who runs the tests. */
const environment = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(LICENSING_|npm_|VITEST|NODE_)/.test(name)))

const execute = (folder: string, script: string): string => {
  const { status, stderr, stdout } = spawnSync("bash", ["-euo", "pipefail", "-c", script], {
    cwd: folder,
    env: environment(),
    encoding: "utf8"
  })
  assert.strictEqual(status, 0, `${stdout}\n${stderr}`)
  return stdout
}

const shell = (page: string) =>
  blocksOf(page)
    .filter(({ language }) => language === "sh")
    .map(({ code }) => code)

it.live(
  "README.md: its commands issue a license and verify its signature, in a first run and in a second",
  () =>
    Effect.gen(function* () {
      const folder = yield* clone
      const port = yield* freePort
      const [start = "", ...steps] = shell("README.md")
      assert.strictEqual(start, "npm ci\nnpm start\n")
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
