/** The configuration of VitePress. `npm run docs` (infra/scripts/pages.ts) sets what it builds. */
import { defineConfig } from "vitepress"

interface Built {
  readonly base: string
  readonly out: string
  readonly staged: string
  readonly groups: ReadonlyArray<string>
  readonly pages: ReadonlyArray<{ readonly path: string; readonly title: string; readonly section: string }>
}

const { base, groups, out, pages, staged }: Built = JSON.parse(process.env["PAGES"] ?? "{}")

const linkOf = (path: string) => `/${path.replace(/(index)?\.md$/, "")}`
const section = (name: string, collapsed: boolean) => ({
  text: name,
  collapsed,
  items: pages.filter((page) => page.section === name).map(({ path, title }) => ({ text: title, link: linkOf(path) }))
})
const reference = {
  text: "API reference",
  link: "/reference/",
  collapsed: true,
  items: [...groups, "deliveries", "schemas"].map((name) => ({ text: name, link: `/reference/${name}` }))
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
  vite: { publicDir: `${staged}/public`, server: { fs: { strict: false } } },
  markdown: { anchor: { slugify: slugOf }, config: withoutDiagrams },
  themeConfig: {
    nav: [
      { text: "Start", link: "/start" },
      { text: "API", link: "/api" },
      { text: "Reference", link: "/reference/" },
      { text: "Error codes", link: "/errors" }
    ],
    sidebar: [section("Start", false), section("Guides", false), section("API", false), reference, section("Operate", true), section("For maintainers", true)],
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

/** The text of a diagram says less to people than the table below it. */
function withoutDiagrams(md: { renderer: { rules: { fence?: unknown } } }) {
  const fence = md.renderer.rules.fence as (tokens: ReadonlyArray<{ info: string }>, index: number, ...rest: ReadonlyArray<unknown>) => string
  md.renderer.rules.fence = (tokens: ReadonlyArray<{ info: string }>, index: number, ...rest: ReadonlyArray<unknown>) =>
    tokens[index]?.info === "mermaid" ? "" : fence(tokens, index, ...rest)
}
