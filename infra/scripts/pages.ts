/**
 * Builds the documentation site: `npm run docs`. The service shows the result at /docs/ after its next start. Any web server can host
 * it: `npm run docs -- --base / --out <folder>`.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { sections } from "./pages/Contents.ts"
import { stage } from "./pages/Stage.ts"
import { installTools } from "./tools.ts"

const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "")
const { values } = parseArgs({ options: { base: { type: "string" }, out: { type: "string" } } })
const base = values.base ?? "/docs/"
const out = resolve(values.out ?? join(root, "site"))
const staged = join(root, "node_modules/.cache/pages", createHash("sha256").update(out).digest("hex").slice(0, 8))

if (!/^\/([\w.-]+\/)*$/.test(base)) throw new Error("--base must begin and end with a slash.")

const { groups, pages } = stage(root, staged, base)
// The configuration of the site's tool reads it.
const PAGES = JSON.stringify({ base, out, staged, sections, groups, pages })
const vitepress = join(installTools("pages"), "vitepress")
execFileSync(vitepress, ["build", "infra/pages", "--base", base, "--outDir", out], {
  cwd: root,
  env: { ...process.env, PAGES, NODE_ENV: "production" },
  stdio: "inherit"
})

/** Moves inline scripts into files, so that a policy can forbid them. */
const scripts = new Set<string>()
for (const name of readdirSync(out, { recursive: true, encoding: "utf8" })) {
  if (!name.endsWith(".html")) continue
  const html = readFileSync(join(out, name), "utf8")
  const moved = html.replaceAll(/<script id="[\w-]+">([\s\S]*?)<\/script>/g, (_, code: string) => {
    const file = `assets/inline.${createHash("sha256").update(code).digest("hex").slice(0, 8)}.js`
    if (!scripts.has(file)) writeFileSync(join(out, file), code)
    scripts.add(file)
    return `<script src="${base}${file}"></script>`
  })
  writeFileSync(join(out, name), moved)
}
const listed = pages
  .filter(({ section }) => section !== "For maintainers")
  .toSorted((one, other) => sections.indexOf(one.section) - sections.indexOf(other.section))
writeFileSync(
  join(out, "pages.json"),
  JSON.stringify(listed.map(({ description, path, section, title }) => ({ path, title, description, section })))
)
rmSync(staged, { recursive: true, force: true })
