/** The service: JavaScript of its sources, the web pages, the documentation site, and what it reads of schema/. */
import { execFileSync } from "node:child_process"
import { cpSync } from "node:fs"
import { join } from "node:path"
import { root } from "./Contents.ts"

const read = ["schema/examples.json", "schema/mails", "schema/migrations", "schema/schema.sql", "schema/upgrades"]

export const stageService = async (folder: string): Promise<ReadonlyArray<string>> => {
  const dist = join(folder, "dist")
  const run = (program: string, ...args: ReadonlyArray<string>) =>
    execFileSync(program, args, { cwd: root, stdio: ["ignore", "ignore", "inherit"] })
  // Each further thread would check the same declarations again, for twice the work.
  const config = ["-p", "infra/package/tsconfig.build.json", "--checkers", "1"]
  run(join(root, "node_modules/.bin/tsc"), ...config, "--outDir", dist)
  // What the reference page loads.
  for (const name of ["Reference.css", "Favicon.svg"])
    cpSync(join(root, "src/edge/documents/reference", name), join(dist, "edge/documents/reference", name))
  run(process.execPath, "infra/scripts/console.mjs", join(dist, "clients"))
  run(process.execPath, "infra/scripts/pages.ts", "--out", join(dist, "site"))
  for (const path of read) cpSync(join(root, path), join(folder, path), { recursive: true })
  cpSync(join(root, "CHANGELOG.md"), join(folder, "CHANGELOG.md"))
  cpSync(join(root, "infra/package/service/licensing-service.mjs"), join(folder, "bin/licensing-service.mjs"))
  return ["src", "docs", "infra/pages", "CHANGELOG.md", ...read]
}
