/**
 * Lints schema/openapi.yaml with the recommended rules of Redocly and of Spectral; a warning fails it, too. npx fetches both: they are no
 * dependencies, because they bring several hundred packages.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "./service.ts"

const document = join(root, "schema/openapi.yaml")
const folder = mkdtempSync(join(tmpdir(), "licensing-lint-"))
const ruleset = join(folder, "spectral.yaml")
writeFileSync(ruleset, "extends: spectral:oas\n")

const linters = [
  ["@redocly/cli@2.77.0", "lint", "--extends=recommended", document],
  ["@stoplight/spectral-cli@6.16.3", "lint", "--ruleset", ruleset, "--fail-severity=warn", document]
]
for (const args of linters) {
  const { status, stderr, stdout } = spawnSync("npx", ["--yes", ...args], { cwd: folder, encoding: "utf8" })
  process.stdout.write(`${stdout}${stderr}`)
  // Redocly exits with 0 after warnings.
  if (status !== 0 || /\d+ warnings?/i.test(stdout + stderr)) process.exitCode = 1
}
rmSync(folder, { recursive: true, force: true })
