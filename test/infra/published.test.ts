/** The documentation site publishes files of the repository, and nothing that somebody keeps beside them. */
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { listedFiles, publishedFiles } from "../../infra/scripts/pages/Files.ts"
import { stage } from "../../infra/scripts/pages/Stage.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const beside = [
  "infra/helm/values-prod.yaml",
  "infra/helm/licensing-service/values-prod.yaml",
  "infra/compose/.env",
  "infra/compose/.env.production",
  "infra/balancers/tls.key",
  "infra/balancers/tls.pem",
  "infra/notes.txt",
  "schema/dump.sql"
]
const drafts = ["docs/draft.md", "docs/guides/draft.md", "docs/clients/draft.md"]

const filesBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(folder, name)).isFile())
    .toSorted()

describe("The documentation site", () => {
  const folder = mkdtempSync(join(tmpdir(), "licensing-published-"))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it("has an up-to-date list of files (otherwise run npm run generate)", () => {
    for (const [path, text] of Object.entries(publishedFiles(root)))
      assert.strictEqual(readFileSync(join(root, path), "utf8"), text)
  })

  it("publishes what is listed, and nothing beside it", () => {
    const [source, site] = [join(folder, "source"), join(folder, "site")]
    const texts = readdirSync(root).filter((name) => name.endsWith(".md"))
    const own = ["infra/pages/files.txt", "src/edge/documents/reference/Favicon.svg"]
    for (const path of ["docs", ...texts, ...own, ...listedFiles(root)])
      cpSync(join(root, path), join(source, path), { recursive: true })
    for (const path of [...beside, ...drafts]) writeFileSync(join(source, path), "# A draft\n\nA secret\n")
    // Not even if somebody adds them to the repository.
    appendFileSync(join(source, "infra/pages/files.txt"), "infra/compose/.env.production\ninfra/balancers/tls.key\n")
    stage(source, site, "/docs/")
    assert.deepStrictEqual(filesBelow(join(site, "public/files")), listedFiles(root).toSorted())
    assert.notMatch(filesBelow(site).join("\n"), /draft/)
    const index = readFileSync(join(site, "pages/files/infra/index.md"), "utf8")
    for (const path of beside) assert.notInclude(index, `files/${path})`)
  })

  it("is built in the image without the secrets beside it", () => {
    const lines = readFileSync(join(root, "infra/Dockerfile.dockerignore"), "utf8").split("\n")
    const [env, example] = ["**/.env*", "!**/.env.example"].map((line) => lines.indexOf(line))
    assert.isAbove(env!, lines.indexOf("!infra"))
    assert.isAbove(example!, env!)
    for (const name of ["*.key", "*.pem", "values-*.yaml"])
      assert.isAbove(lines.indexOf(`**/${name}`), lines.indexOf("!infra"), name)
  })
})
