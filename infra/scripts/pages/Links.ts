/**
 * Links of a text in the repository, for its page in the site: to another page, or to a copy of a file. A link to nothing that exists
 * fails the build.
 */
import { existsSync, statSync } from "node:fs"
import { dirname, join, relative } from "node:path/posix"

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
  /** The path in the site of each text that is a page. */
  readonly pages: ReadonlyMap<string, string>
}

/** The end of a link to a file's copy; with a target the site's tool leaves the address as it is. */
export const fileLink = (base: string, file: string): string => `${base}files/${file}){target="_self"}`

/** The end of a link, or a whole picture. */
const links = /(!\[[^\]]*)?\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)/g

export const withSiteLinks = (text: string, { base, pages, path, root, source }: Place): Linked => {
  const files: Array<string> = []
  const rewritten = outsideCode(text, (part) =>
    part.replaceAll(links, (_, image: string | undefined, target: string, anchor = "") => {
      const named = join(dirname(source), target).replace(/\/$/, "")
      const page = pages.get(named)
      if (page !== undefined) return `](${relative(dirname(path), page)}${anchor})`
      if (!existsSync(join(root, named))) throw new Error(`${source} leads to ${target}, which does not exist`)
      files.push(named)
      // The site's tool puts the base in front of a picture's address itself.
      if (image !== undefined) return `${image}](/files/${named})`
      return statSync(join(root, named)).isDirectory()
        ? `](${relative(dirname(path), `files/${named}/index.md`)})`
        : `](${fileLink(base, named)}`
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
