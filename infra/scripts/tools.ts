/**
 * Tools that only some commands need are no dependencies of the project: each folder of infra with a package.json and a
 * package-lock.json of its own has a set. This installs one into its folder, unless exactly its lock file is installed there, and
 * then runs a program of it:
 *
 *   node infra/scripts/tools.ts pages
 *   node infra/scripts/tools.ts lint biome check .
 */
import { execFileSync, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { constants } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Longer than any installation: what waits for another process's installation fails then. */
const lockMillisMax = 600_000

const digestOf = (folder: string): string => {
  const hash = createHash("sha256").update(`${process.platform} ${process.arch}`)
  for (const name of ["package.json", "package-lock.json"]) hash.update(readFileSync(join(folder, name)))
  return hash.digest("hex")
}

/** Installs the tools in `infra/<name>`; the folder of their programs. */
export const installTools = (name: string): string => {
  const folder = join(root, "infra", name)
  const installed = join(folder, "node_modules/.installed")
  const isInstalled = () => existsSync(installed) && readFileSync(installed, "utf8") === digestOf(folder)
  if (!isInstalled()) {
    const locks = join(root, "node_modules/.cache/tools")
    mkdirSync(locks, { recursive: true })
    // A lock of the file system, which ends with its process: tests that run side by side need the same tools.
    const lock = new DatabaseSync(join(locks, `${name}.lock`), { timeout: lockMillisMax })
    lock.exec("BEGIN EXCLUSIVE")
    if (!isInstalled()) {
      process.stderr.write(`Installing the tools in infra/${name}.\n`)
      // Standard output is the command's own.
      // What the command's caller asked of its own npm, as `npm pack --dry-run` or `--omit=dev`, does not concern the tools.
      // Peers, as Rolldown of the packages, are the project's own.
      const whole = ["--no-dry-run", "--include=dev", "--include=optional", "--legacy-peer-deps"]
      const quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
      execFileSync("npm", ["ci", ...whole, ...quiet], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] })
      writeFileSync(installed, digestOf(folder))
    }
    lock.close()
  }
  return join(folder, "node_modules/.bin")
}

/** Runs a program with this process's terminal, and ends as it does. */
const runTool = (path: string, args: ReadonlyArray<string>): void => {
  const child = spawn(path, args, { stdio: "inherit" })
  // A terminal sends Ctrl-C to both; a service manager sends SIGTERM to this process alone.
  process.on("SIGINT", () => {})
  process.on("SIGTERM", () => child.kill("SIGTERM"))
  child.on("error", (error) => {
    throw error
  })
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal])
  })
}

if (import.meta.main) {
  const [name, program, ...args] = process.argv.slice(2)
  if (name === undefined) throw new Error("Name a folder of infra.")
  const programs = installTools(name)
  if (program !== undefined) runTool(join(programs, program), args)
}
