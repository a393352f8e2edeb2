/** The configuration of VitePress. `npm run docs` (infra/scripts/pages.ts) sets what it builds. */
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitepress"

interface Built {
  readonly base: string
  readonly out: string
  readonly staged: string
  /** In the order of the sidebar. */
  readonly sections: ReadonlyArray<string>
  readonly groups: ReadonlyArray<{ readonly name: string; readonly title: string }>
  readonly pages: ReadonlyArray<{ readonly path: string; readonly title: string; readonly section: string }>
}

const { base, groups, out, pages, sections, staged }: Built = JSON.parse(process.env["PAGES"] ?? "{}")

const linkOf = (path: string) => `/${path.replace(/(index)?\.md$/, "")}`
/** Sections before the reference are open. */
const section = (name: string) => ({
  text: name,
  collapsed: sections.indexOf(name) > sections.indexOf("API"),
  items: pages.filter((page) => page.section === name).map(({ path, title }) => ({ text: title, link: linkOf(path) }))
})
const reference = {
  text: "API reference",
  link: "/reference/",
  collapsed: true,
  items: groups.map(({ name, title }) => ({ text: title, link: `/reference/${name}` }))
}

/** As GitHub makes them: the texts are read there, too. */
const slugOf = (heading: string) =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, "")
    .replaceAll(" ", "-")

export default defineConfig({
  base,
  outDir: out,
  srcDir: `${staged}/pages`,
  cacheDir: `${staged}/cache`,
  title: "Licensing service",
  description: "Guides and API reference of the licensing service.",
  lang: "en",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}favicon.svg` }]],
  // One page after the other: the search index lists them in the order in which they are read, and a build must be reproducible.
  buildConcurrency: 1,
  // Otherwise each page has it as an inline script.
  metaChunk: true,
  vite: { publicDir: `${staged}/public`, server: { fs: { strict: false } }, plugins: [withRanking()] },
  markdown: { anchor: { slugify: slugOf }, config: withoutDiagrams },
  themeConfig: {
    nav: [
      { text: "Start", link: "/start" },
      { text: "API", link: "/api" },
      { text: "Reference", link: "/reference/" },
      { text: "Error codes", link: "/errors" }
    ],
    sidebar: sections.flatMap((name) => (name === "API" ? [section(name), reference] : [section(name)])),
    outline: [2, 3],
    search: {
      provider: "local",
      options: {
        _render: (source, env, md) => {
          const html = md.render(source, env)
          return env.frontmatter?.["search"] === false ? "" : html
        }
      }
    }
  }
})

/** The search box gets Search.ts in place of MiniSearch. */
function withRanking() {
  const search = fileURLToPath(new URL("./theme/Search.ts", import.meta.url))
  return {
    name: "ranking",
    enforce: "pre" as const,
    resolveId: (id: string, importer = "") => (id === "minisearch" && importer.includes("VPLocalSearchBox") ? search : undefined)
  }
}

/** The text of a diagram says less to people than the table below it. */
function withoutDiagrams(md: { renderer: { rules: { fence?: unknown } } }) {
  const fence = md.renderer.rules.fence as (tokens: ReadonlyArray<{ info: string }>, index: number, ...rest: ReadonlyArray<unknown>) => string
  md.renderer.rules.fence = (tokens: ReadonlyArray<{ info: string }>, index: number, ...rest: ReadonlyArray<unknown>) =>
    tokens[index]?.info === "mermaid" ? "" : fence(tokens, index, ...rest)
}
