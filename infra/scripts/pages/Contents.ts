/**
 * The pages of the documentation site: which texts of the repository they are made of, their places, and the sidebar. What must stay
 * true: only texts of the repository, no draft that somebody keeps beside them.
 */
import { readFileSync } from "node:fs"

export interface Page {
  /** The text's path from the project's folder. */
  readonly source: string
  /** The page's path in the site, as Markdown. */
  readonly path: string
  readonly title: string
  /** The page's first paragraph. */
  readonly description: string
  readonly section: Section
}

/** In the order of the sidebar and of llms.txt. Pages for maintainers are not found by the search. */
export const sections = ["Start", "Applications", "Guides", "API", "Operate", "For maintainers"] as const
type Section = (typeof sections)[number]

/** Pages with a place of their own, in the order of the sidebar; those in a folder below have its section. */
const places: ReadonlyArray<readonly [source: string, path: string, section: Section]> = [
  ["docs/README.md", "index.md", "Start"],
  ["README.md", "start.md", "Start"],
  ["CHANGELOG.md", "changelog.md", "Start"],
  ["docs/guides/kit.md", "guides/kit.md", "Applications"],
  ["docs/guides/testing.md", "guides/testing.md", "Applications"],
  ["docs/guides/effect-client.md", "guides/effect-client.md", "Applications"],
  ["docs/guides/generated-clients.md", "guides/generated-clients.md", "Applications"],
  ["docs/VERIFYING.md", "verifying-responses.md", "Applications"],
  ["docs/clients/README.md", "clients/index.md", "Applications"],
  ["docs/guides/scenarios.md", "guides/scenarios.md", "Guides"],
  ["docs/guides/floating-seats.md", "guides/floating-seats.md", "Guides"],
  ["docs/guides/quotas.md", "guides/quotas.md", "Guides"],
  ["docs/WEBHOOKS.md", "webhooks.md", "Guides"],
  ["docs/API.md", "api.md", "API"],
  ["docs/ERRORS.md", "errors.md", "API"],
  ["docs/EVENTS.md", "events.md", "API"],
  ["docs/STATES.md", "states.md", "API"],
  ["docs/GLOSSARY.md", "glossary.md", "API"],
  ["docs/guides/upgrade.md", "guides/upgrade.md", "Operate"],
  ["SECURITY.md", "reporting-vulnerabilities.md", "Operate"],
  ["CONTRIBUTING.md", "contributing.md", "For maintainers"],
  ["docs/ARCHITECTURE.md", "architecture.md", "For maintainers"],
  ["docs/TESTING.md", "testing.md", "For maintainers"],
  ["docs/decisions/README.md", "decisions/index.md", "For maintainers"]
]

const folders: ReadonlyArray<readonly [folder: string, section: Section]> = [
  ["docs/guides/applications/", "Applications"],
  ["docs/guides/", "Guides"],
  ["docs/clients/", "Applications"],
  ["docs/decisions/", "For maintainers"],
  ["docs/", "Operate"]
]

/** The committed list of the texts below docs/. */
export const textsPath = "infra/pages/texts.txt"

const listedTexts = (root: string): ReadonlyArray<string> =>
  readFileSync(`${root}/${textsPath}`, "utf8")
    .split("\n")
    .filter((path) => path !== "")

/** All pages made of texts: those with a place, then the other listed ones. */
export const pagesOf = (root: string, texts: ReadonlyArray<string> = listedTexts(root)): ReadonlyArray<Page> => {
  const placed = new Set(places.map(([source]) => source))
  const others = texts
    .filter((source) => !placed.has(source))
    .map((source) => {
      const [, section] = folders.find(([folder]) => source.startsWith(folder))!
      return [source, source.slice("docs/".length).toLowerCase(), section] as const
    })
  return [...places, ...others].map(([source, path, section]) => {
    const text = readFileSync(`${root}/${source}`, "utf8")
    return { source, path, section, ...headOf(text) }
  })
}

const headOf = (text: string) => {
  const [, title = "", rest = ""] = /^# (.+)\n+([\s\S]*)/.exec(text) ?? []
  const [paragraph = ""] = rest.split(/\n\n|\n(?=[#|`-])/)
  return {
    title,
    description: paragraph
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .replaceAll("\n", " ")
      .trim()
  }
}
