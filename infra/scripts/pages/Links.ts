/**
 * Links of a text in the repository, for its page in the site: to another page, or to a copy of a file. A page that is named by its file
 * is named by its title. A link to nothing that exists fails the build.
 */
import { existsSync, statSync } from "node:fs"
import { dirname, join, relative } from "node:path/posix"

import type { Page } from "./Contents.ts"

export interface Linked {
  readonly text: string
  /** Files and folders of the repository that the text shows or leads to, and that are no pages. */
  readonly files: ReadonlyArray<string>
}

interface Place {
  readonly source: string
  /** The text's path in the site. */
  readonly path: string
  readonly root: string
  /** The path of the site on its host. */
  readonly base: string
  /** Of each text that is a page. */
  readonly pages: ReadonlyMap<string, Pick<Page, "path" | "title">>
}

/** The end of a link to a file's copy; with a target the site's tool leaves the address as it is. */
export const fileLink = (base: string, file: string): string => `${base}files/${file}){target="_self"}`

/** The end of a link, or a whole picture, or a whole link whose text is the name of a file or folder. */
const links = /(!\[[^\]]*|\[[\w./-]+(?:\.md|\/))?\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)/g

export const withSiteLinks = (text: string, { base, pages, path, root, source }: Place): Linked => {
  const files: Array<string> = []
  const rewritten = outsideCode(text, (part) =>
    part.replaceAll(links, (_, begun = "", target: string, anchor = "") => {
      const named = join(dirname(source), target).replace(/\/$/, "")
      const page = pages.get(named)
      if (page !== undefined) {
        const text = begun === "" ? "" : `[${page.title}`
        return `${text}](${relative(dirname(path), page.path)}${anchor})`
      }
      if (!existsSync(join(root, named))) throw new Error(`${source} leads to ${target}, which does not exist`)
      files.push(named)
      // The site's tool puts the base in front of a picture's address itself.
      if (begun.startsWith("!")) return `${begun}](/files/${named})`
      return statSync(join(root, named)).isDirectory()
        ? `${begun}](${relative(dirname(path), `files/${named}/index.md`)})`
        : `${begun}](${fileLink(base, named)}`
    })
  )
  return { text: rewritten, files }
}

/** Replaces in the parts of a Markdown text that are not blocks of code. */
const outsideCode = (text: string, replace: (part: string) => string): string =>
  text
    .split(/^(```[\s\S]*?^```)$/m)
    .map((part) => (part.startsWith("```") ? part : replace(part)))
    .join("")
