/**
 * Installs the kit and the typed client as users do, and tries them with many versions of Node, TypeScript and bundlers: `npm run
 * packages:matrix`. It downloads about 700 MB, which npm caches, and takes minutes; test/infra/packages tries a few of them.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { installTools } from "./tools.ts"

const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "")
const home = mkdtempSync(join(tmpdir(), "licensing-matrix-"))
const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

const run = (folder: string, program: string, ...args: ReadonlyArray<string>): string =>
  execFileSync(program, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 2 ** 26 })

const failures: Array<string> = []
const trial = (title: string, attempt: () => void): void => {
  try {
    attempt()
    console.log(`ok      ${title}`)
  } catch (problem) {
    const { message, stderr, stdout } = problem as { message: string; stderr?: string; stdout?: string }
    failures.push(title)
    console.log(`FAILED  ${title}\n${stdout ?? ""}${stderr ?? message}`)
  }
}

const check = (isRight: boolean, wanted: string): void => {
  if (!isRight) throw new Error(wanted)
}

/** A folder in which npm has installed these. */
const project = (name: string, ...packages: ReadonlyArray<string>): string => {
  const folder = join(home, name)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "fresh", private: true }))
  if (packages.length > 0) run(folder, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error", ...packages)
  return folder
}

run(root, process.execPath, "infra/scripts/packages.ts", "--out", home, "kit", "client")
const archiveOf = (name: string) =>
  join(home, readdirSync(home).find((file) => file.startsWith(`licensing-service-${name}-`)) ?? "missing")
const [kit, client, effect] = [archiveOf("kit"), archiveOf("client"), `effect@${dependencies.effect}`]

/** What an application does first, without a network. */
const opened = `LicenseKit.open({ baseUrl: "http://127.0.0.1:9", productCode: "editor", trustPublishedKeys: true, keys: [],
  binding: { fingerprint: "f" }, store: memoryStore() }).then((kit) => console.log(kit.verdict.reason))\n`
const imported = `import { LicenseKit, memoryStore } from "@licensing-service/kit"\n${opened}`
const required = `const { LicenseKit, memoryStore } = require("@licensing-service/kit")\n${opened}`
const wanted = "NOT_ACTIVATED"
const expectWanted = (printed: string) => check(printed.trim() === wanted, `it printed ${printed}`)

/** Has the kit verify signatures on each platform. */
const guide = readFileSync(join(root, "docs/guides/testing.md"), "utf8")
const year = (/```ts\n(.*?)```/s.exec(guide)?.[1] ?? "").replace("(wanted: string)", "(wanted)")

const application = project("application", kit)
const consumer = project("consumer", client, effect)
for (const [name, text] of Object.entries({ "a.mjs": imported, "a.cjs": required, "year.mjs": year }))
  writeFileSync(join(application, name), text)
writeFileSync(
  join(consumer, "a.mjs"),
  `import { Client } from "@licensing-service/client"\nif (typeof Client.layer === "function") console.log("${wanted}")\n`
)

trial("npm installs the kit without a warning and without another package", () => {
  const folder = project("quiet")
  const printed = run(folder, "sh", "-c", `npm install --loglevel=notice ${kit} 2>&1`)
  check(/added 1 package/.test(printed) && !/warn/i.test(printed), printed)
})

const platform = `${process.platform === "win32" ? "win" : process.platform}-${process.arch}`
for (const version of ["20", "22", "24", "26"]) {
  const folder = project(`node${version}`, `node-${platform}@${version}`)
  const node = join(folder, `node_modules/node-${platform}/bin/node`)
  for (const file of ["a.mjs", "a.cjs"])
    trial(`Node ${version}: ${file}`, () => expectWanted(run(application, node, file)))
  trial(`Node ${version}: a year in a test`, () => void run(application, node, "year.mjs"))
  if (version !== "20") trial(`Node ${version}: the client`, () => expectWanted(run(consumer, node, "a.mjs")))
}

trial("Deno: run and check", () => {
  const deno = join(installTools("deno"), "deno")
  expectWanted(run(application, deno, "run", "--no-prompt", "--node-modules-dir=manual", "a.mjs"))
  run(application, deno, "run", "--no-prompt", "--node-modules-dir=manual", "year.mjs")
  writeFileSync(join(application, "checked.ts"), imported)
  run(application, deno, "check", "--node-modules-dir=manual", "checked.ts")
})

const code = `import { LicenseKit, type Verdict } from "@licensing-service/kit"
export const open = LicenseKit.open
export const said = ({ decision }: Verdict): "run" | "warn" | "ask" | "stop" => decision\n`
const clientCode = `import { Client, type Operations } from "@licensing-service/client"
export const layer = Client.layer
export type Created = ReturnType<Operations["createLicense"]>\n`

/** Each resolution, and the last TypeScript that has it. */
const resolutions = [
  { module: "commonjs", moduleResolution: "node10", until: 6 },
  { module: "node16", moduleResolution: "node16", until: 99 },
  { module: "esnext", moduleResolution: "bundler", until: 99 }
]
for (const version of ["5.6", "5.7", "5.8", "5.9", "6", "latest"]) {
  const folder = project(`typescript-${version}`, `typescript@${version}`)
  const { version: exact } = JSON.parse(readFileSync(join(folder, "node_modules/typescript/package.json"), "utf8"))
  const compile = (at: string, options: object, include: ReadonlyArray<string>) => {
    const compilerOptions = {
      strict: true,
      noEmit: true,
      target: "es2022",
      lib: ["es2022", "dom"],
      types: [],
      ...options
    }
    writeFileSync(join(at, "tsconfig.json"), JSON.stringify({ compilerOptions, include }))
    run(at, process.execPath, join(folder, "node_modules/typescript/bin/tsc"), "-p", ".")
  }
  for (const name of ["a.ts", "a.mts", "a.cts"]) writeFileSync(join(application, name), code)
  for (const name of ["a.ts", "a.mts"]) writeFileSync(join(consumer, name), clientCode)
  for (const { until, ...resolution } of resolutions) {
    if (Number.parseInt(exact, 10) > until) continue
    const silent = exact.startsWith("6") && { ignoreDeprecations: "6.0" }
    for (const skipLibCheck of [true, false]) {
      const options = { ...resolution, ...silent, skipLibCheck }
      const title = `TypeScript ${exact}, ${resolution.moduleResolution}, skipLibCheck ${skipLibCheck}`
      const isNode16 = resolution.module === "node16"
      trial(`${title}: the kit`, () => compile(application, options, isNode16 ? ["*.ts", "*.mts", "*.cts"] : ["a.ts"]))
      // Effect's own declarations need TypeScript 5.7.
      if (resolution.moduleResolution !== "node10" && (skipLibCheck || version !== "5.6"))
        trial(`${title}: the client`, () => compile(consumer, options, [isNode16 ? "a.mts" : "a.ts"]))
    }
  }
}

const bundlers = project("bundlers", "esbuild", "vite", "webpack", "webpack-cli", kit)
writeFileSync(join(bundlers, "entry.mjs"), imported)
const electron = `import { app } from "electron"\n${imported}void app\n`
writeFileSync(join(bundlers, "main.mjs"), electron)
const bin = (name: string) => join(bundlers, "node_modules/.bin", name)
trial("esbuild: a browser's bundle", () => {
  run(bundlers, bin("esbuild"), "entry.mjs", "--bundle", "--minify", "--format=esm", "--outfile=esbuild.mjs")
  expectWanted(run(bundlers, process.execPath, "esbuild.mjs"))
})
trial("Vite: a library", () => {
  const build = { lib: { entry: "entry.mjs", formats: ["es"], fileName: "vite" }, outDir: "vite", emptyOutDir: true }
  writeFileSync(join(bundlers, "vite.config.mjs"), `export default ${JSON.stringify({ build, logLevel: "error" })}`)
  run(bundlers, bin("vite"), "build")
  expectWanted(run(join(bundlers, "vite"), process.execPath, readdirSync(join(bundlers, "vite"))[0] ?? ""))
})
trial("webpack: a browser's bundle", () => {
  run(bundlers, bin("webpack"), "./entry.mjs", "--mode", "production", "--output-path", join(bundlers, "webpack"))
  expectWanted(run(join(bundlers, "webpack"), process.execPath, "main.js"))
})
// Electron's binary comes from elsewhere: the bundle runs on Node with a stand-in for `electron`.
trial("Electron: the main process as one CommonJS file", () => {
  const options = ["--bundle", "--platform=node", "--format=cjs", "--external:electron", "--outfile=main.cjs"]
  run(bundlers, bin("esbuild"), "main.mjs", ...options)
  mkdirSync(join(bundlers, "node_modules/electron"), { recursive: true })
  writeFileSync(join(bundlers, "node_modules/electron/index.js"), "exports.app = {}")
  expectWanted(run(bundlers, process.execPath, "main.cjs"))
})

trial("two packs of the same sources have the same bytes", () => {
  const [first, second] = ["first", "second"].map((name) => {
    run(root, process.execPath, "infra/scripts/packages.ts", "--out", join(home, name))
    return join(home, name)
  }) as [string, string]
  for (const name of readdirSync(first))
    check(readFileSync(join(first, name)).equals(readFileSync(join(second, name))), name)
})

rmSync(home, { recursive: true, force: true })
console.log(failures.length === 0 ? "Everything works." : `${failures.length} failed.`)
process.exitCode = failures.length === 0 ? 0 : 1
