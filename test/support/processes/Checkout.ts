/** The project in a fresh folder, its commands, and the blocks of shell code in its texts. */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { chmodSync, cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { blocksOf } from "./DocumentBlocks.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "")

/** The project as a clone has it, with its packages. */
export const clone = Effect.acquireRelease(
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
export const running = (folder: string, command: string, env: Record<string, string>, sign: RegExp) =>
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

/**
 * Without the settings of the one who runs the tests. Node keeps compiled modules by their place relative to the packages, so every
 * process in every such folder finds them.
 */
const environment = () => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(LICENSING_|npm_|VITEST|NODE_)/.test(name))),
  NODE_COMPILE_CACHE: "node_modules/.cache/compiled",
  NODE_COMPILE_CACHE_PORTABLE: "1"
})

/** Runs a script in the folder; gives what it prints. */
export const execute = (folder: string, script: string, env: Record<string, string> = {}): string => {
  const { status, stderr, stdout } = spawnSync("bash", ["-euo", "pipefail", "-c", script], {
    cwd: folder,
    env: { ...environment(), ...env },
    encoding: "utf8"
  })
  assert.strictEqual(status, 0, `${stdout}\n${stderr}`)
  return stdout
}

/** The blocks of a page, in order. */
export const shell = (page: string) =>
  blocksOf(page)
    .filter(({ language }) => language === "sh")
    .map(({ code }) => code)
