// Completes the lock files, the project's and those of the tools in infra, after an `npm install`. Run it if test/tidy.test.ts says so.
//
// - A registry may not serve every platform's packages: npm omits those, and `npm ci` then refuses the file everywhere. The missing
//   entries are derived from the packages that depend on them; only their digests stay unknown.
// - Packages name the versions of Node that they need. What npm itself runs on does not matter: they run on the Node that the
//   package `node` installs, and `npm ci` would warn of a machine's own Node. The lock files leave these lines out.
// - Download addresses are left out: each machine has its own registry.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"

const nameOf = (key) => key.slice(key.lastIndexOf("node_modules/") + "node_modules/".length)
const systems = ["android", "darwin", "freebsd", "linux", "netbsd", "openbsd", "openharmony", "sunos", "win32"]

const entryOf = (name, version, dependent) => {
  const os = systems.find((system) => name.includes(`${system}-`))
  const [, cpu] = /-(arm64|x64|arm|ppc64|loong64|riscv64|s390x|ia32)\b/.exec(name) ?? []
  if (os === undefined || cpu === undefined || !/^\d+\.\d+\.\d+$/.test(version)) {
    throw new Error(`${name}@${version} does not tell its platform or version: add it to package-lock.json by hand`)
  }
  const libc =
    os !== "linux" ? undefined : name.includes("musl") ? "musl" : /gnu|glibc/.test(name) ? "glibc" : undefined
  return {
    version,
    cpu: [cpu],
    ...(dependent.dev && { dev: true }),
    ...(libc && { libc: [libc] }),
    license: dependent.license,
    optional: true,
    os: [os]
  }
}

/** An entry without its download address and its versions of Node. */
const trimmed = ({ engines, resolved, ...entry }) => {
  const { node, ...others } = Array.isArray(engines) ? {} : (engines ?? {})
  return {
    ...entry,
    ...(resolved !== undefined && !resolved.startsWith("http") && { resolved }),
    ...(Object.keys(others).length > 0 && { engines: others })
  }
}

const complete = (path) => {
  const lock = JSON.parse(readFileSync(path, "utf8"))
  const listed = new Set(Object.keys(lock.packages).map(nameOf))
  for (const dependent of Object.values(lock.packages)) {
    for (const [name, version] of Object.entries(dependent.optionalDependencies ?? {})) {
      if (!listed.has(name)) lock.packages[`node_modules/${name}`] = entryOf(name, version, dependent)
    }
  }
  const byName = Object.entries(lock.packages)
    .map(([name, entry]) => [name, trimmed(entry)])
    .sort(([a], [b]) => a.localeCompare(b, "en"))
  writeFileSync(path, `${JSON.stringify({ ...lock, packages: Object.fromEntries(byName) }, null, 2)}\n`)
}

const infra = new URL("../", import.meta.url)
const tools = readdirSync(infra).map((name) => new URL(`${name}/package-lock.json`, infra))
for (const path of [new URL("../package-lock.json", infra), ...tools]) if (existsSync(path)) complete(path)
