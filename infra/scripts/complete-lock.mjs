// Completes package-lock.json after an `npm install` from a registry that does not serve every platform's packages: npm omits
// those, and `npm ci` then refuses the file everywhere. The missing entries are derived from the packages that depend on them;
// only their digests stay unknown. Run it if test/tidy.test.ts reports missing optional packages.
import { readFileSync, writeFileSync } from "node:fs"

const path = new URL("../../package-lock.json", import.meta.url)
const lock = JSON.parse(readFileSync(path, "utf8"))
const nameOf = (key) => key.slice(key.lastIndexOf("node_modules/") + "node_modules/".length)
const listed = new Set(Object.keys(lock.packages).map(nameOf))
const systems = ["android", "darwin", "freebsd", "linux", "openbsd", "openharmony", "win32"]

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

for (const dependent of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(dependent.optionalDependencies ?? {})) {
    if (!listed.has(name)) lock.packages[`node_modules/${name}`] = entryOf(name, version, dependent)
  }
}
const byName = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, "en"))
writeFileSync(path, `${JSON.stringify({ ...lock, packages: Object.fromEntries(byName) }, null, 2)}\n`)
