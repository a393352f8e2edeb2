/** Writes the site's source into a folder: the pages with their links, copies of the files that they lead to, the reference. */
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { openApiDocument } from "../../../src/edge/documents/Document.ts"
import { deliveriesIntroduction, referenceDeliveries } from "../../../src/edge/documents/reference/Deliveries.ts"
import {
  type Part,
  type Places,
  referenceGroups,
  referenceSchemas
} from "../../../src/edge/documents/reference/Reference.ts"
import { type Page, pagesOf } from "./Contents.ts"
import { listedFiles } from "./Files.ts"
import { fileLink, withSiteLinks } from "./Links.ts"

export interface Staged {
  readonly pages: ReadonlyArray<Page>
  /** The pages of the reference. */
  readonly groups: ReadonlyArray<{ readonly name: string; readonly title: string }>
}

/** `base`: the path of the site on its host. */
export const stage = (root: string, folder: string, base: string): Staged => {
  rmSync(folder, { recursive: true, force: true })
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const pages = pagesOf(root)
  const bySource = new Map(pages.map((page) => [page.source, page]))
  const linked = new Set<string>()
  for (const { path, section, source } of pages) {
    const original = readFileSync(join(root, source), "utf8")
    const { files, text } = withSiteLinks(original, { source, path, root, base, pages: bySource })
    write(`pages/${path}`, section === "For maintainers" ? `${unsearched}${text}` : text)
    // Language models and the curious get the text itself.
    write(`public/${path}`, original)
    for (const file of files) linked.add(file)
  }
  const listed = listedFiles(root)
  for (const file of linked) copy({ root, folder, base, listed, write }, file)
  cpSync(join(root, "src/edge/documents/reference/Favicon.svg"), join(folder, "public/favicon.svg"))
  return { pages, groups: writeReference(write) }
}

const unsearched = "---\nsearch: false\n---\n\n"

type Write = (path: string, text: string) => void

interface Target {
  readonly root: string
  readonly folder: string
  readonly base: string
  /** The files that may be published. */
  readonly listed: ReadonlyArray<string>
  readonly write: Write
}

/** Copies a file; a folder with a page that lists it. Only what is listed: a working folder may have secrets beside it. */
const copy = (target: Target, file: string): void => {
  const { base, folder, listed, root, write } = target
  if (!statSync(join(root, file)).isDirectory()) {
    if (!listed.includes(file)) throw new Error(`${file} is not published: git add it, then \`npm run generate\`.`)
    const to = join(folder, "public/files", file)
    mkdirSync(dirname(to), { recursive: true })
    cpSync(join(root, file), to)
    return
  }
  const names = listed.filter((name) => name.startsWith(`${file}/`))
  for (const name of names) copy(target, name)
  const lines = names.map((name) => `- [${name.slice(file.length + 1)}](${fileLink(base, name)}`)
  write(`pages/files/${file}/index.md`, `${unsearched}# Files: ${file}\n\n${lines.join("\n")}\n`)
}

const places: Places = {
  schema: (name) => `schemas.html#${name.toLowerCase()}`,
  code: (code) => `../errors.html#${code.toLowerCase()}`
}

/** One page for each group of operations, one for the deliveries to webhooks, one for the schemas. */
const writeReference = (write: Write): Staged["groups"] => {
  const spec = openApiDocument()
  const groups = referenceGroups(spec, places)
  const lines = groups.flatMap(({ description, name, operations }) => [
    `## [${titleOf(name)}](${name}.md)`,
    "",
    description,
    "",
    ...operations.map(({ id, title }) => `- [${title}](${name}.md#${id.toLowerCase()}) \`${id}\``),
    ""
  ])
  lines.push(
    "## [Webhook deliveries](deliveries.md)",
    "",
    "What webhook endpoints receive, with an example of each type of event.",
    ""
  )
  write("pages/reference/index.md", `${unsearched}# API reference\n\n${introduction}\n\n${lines.join("\n")}`)
  for (const { description, name, operations } of groups) {
    write(
      `pages/reference/${name}.md`,
      `# API reference: ${titleOf(name)}\n\n${description}\n\n${operations.map(partText).join("\n")}`
    )
  }
  const deliveries = referenceDeliveries().map(partText).join("\n")
  write("pages/reference/deliveries.md", `# Webhook deliveries\n\n${deliveriesIntroduction()}\n\n${deliveries}`)
  const schemas = referenceSchemas(spec, { ...places, schema: (name) => `#${name.toLowerCase()}` })
  write("pages/reference/schemas.md", `# API reference: schemas\n\n${schemas.map(partText).join("\n")}`)
  return [
    ...groups.map(({ name }) => ({ name, title: titleOf(name) })),
    { name: "deliveries", title: "Webhook deliveries" },
    { name: "schemas", title: "Schemas" }
  ]
}

/** Of a group, whose name is a tag of the OpenAPI document. */
const titleOf = (name: string): string =>
  titles[name] ?? `${name[0]?.toUpperCase()}${name.slice(1).replaceAll("-", " ")}`

const titles: { readonly [name: string]: string } = {
  "api-keys": "API keys",
  bulkJobs: "Bulk jobs",
  commerce: "Orders and subscriptions",
  ops: "Operator's view"
}

const introduction =
  "Every operation with its fields, codes and an example. " +
  "[API.md](../api.md) explains the rules that a schema cannot express, [Error codes](../errors.md) every code."

// v-pre: the site's tool leaves the braces in it alone.
const partText = ({ html, id, title }: Part): string =>
  `## ${title} {#${id.toLowerCase()}}\n\n<div v-pre>${title === id || id.startsWith("event-") ? "" : `<p><code>${id}</code></p>`}${html}</div>\n`
