/** The service's SBOM: all that is installed in production, and nothing else, with the facts that an auditor compares. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { type Described, serviceSbom } from "../../../infra/scripts/packages/Sbom.ts"
import { root } from "../../../infra/scripts/service.ts"

interface Component {
  readonly "bom-ref": string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly hashes?: ReadonlyArray<{ readonly alg: string; readonly content: string }>
  readonly licenses?: ReadonlyArray<{ readonly license: { readonly id?: string; readonly name?: string } }>
}

interface Locked {
  readonly dev?: boolean
  readonly version: string
  readonly integrity?: string
}

const jsonOf = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8"))
const lock = jsonOf("package-lock.json") as { readonly packages: Readonly<Record<string, Locked>> }
const sbom = serviceSbom(root, jsonOf("package.json") as Described)
const components = sbom.components as unknown as ReadonlyArray<Component>

/** In the document's vocabulary. A license that is none of them is given by its name. */
const spdx = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "ISC", "MIT", "MIT-0", "Unlicense"]
/** Their package.json names no license. */
const unlicensed = ["png-js"]

describe("The service's SBOM", () => {
  it("is CycloneDX 1.6, with a serial number that the content gives", () => {
    assert.deepInclude(sbom, { bomFormat: "CycloneDX", specVersion: "1.6", version: 1 })
    assert.match(
      sbom.serialNumber,
      /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
    )
    assert.strictEqual(serviceSbom(root, jsonOf("package.json") as Described).serialNumber, sbom.serialNumber)
  })

  it("has each package that is installed in production, and no other", () => {
    const installed = Object.entries(lock.packages)
      .filter(([path, { dev }]) => path !== "" && dev !== true)
      .map(([path, { version }]) => `${path.slice(path.lastIndexOf("node_modules/") + 13)}@${version}`)
    assert.sameMembers(
      components.map(({ name, version }) => `${name}@${version}`),
      [...new Set(installed)]
    )
    const direct = Object.keys((jsonOf("package.json") as { dependencies: object }).dependencies)
    assert.includeMembers(
      components.map(({ name }) => name),
      direct
    )
  })

  it("has a purl, a digest and a license of each", () => {
    for (const { hashes = [], licenses, name, purl, version } of components) {
      assert.strictEqual(purl, `pkg:npm/${name.replace("@", "%40")}@${version}`)
      assert.match(hashes[0]?.content ?? "", /^[0-9a-f]{128}$/, name)
      assert.strictEqual(licenses === undefined, unlicensed.includes(name), name)
      for (const { license } of licenses ?? [])
        assert.isTrue(
          license.id === undefined ? license.name !== "" : spdx.includes(license.id),
          `${name}: ${license.id}`
        )
    }
  })

  it("names each once, and says what depends on what", () => {
    const refs = [sbom.metadata.component["bom-ref"], ...components.map((one) => one["bom-ref"])]
    assert.strictEqual(new Set(refs).size, refs.length)
    assert.sameMembers(
      sbom.dependencies.map(({ ref }) => ref),
      refs
    )
    const needed = sbom.dependencies.flatMap(({ dependsOn }) => dependsOn)
    assert.includeMembers(refs, needed)
    // Everything is needed by something.
    for (const ref of refs.slice(1)) assert.include(needed, ref)
  })
})
