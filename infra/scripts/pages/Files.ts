/**
 * The files that the documentation site publishes besides its pages. What must stay true: only files of the repository, never what
 * somebody keeps beside them: the working folder of a service has its secrets.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pagesOf, textsPath } from "./Contents.ts"
import { withSiteLinks } from "./Links.ts"

/** The committed list: the site is also built where there is no repository, as in the build of the image. */
const listPath = "infra/pages/files.txt"

/** Names of secrets: such a file is not published, not even from the repository. */
const isSecret = (path: string): boolean =>
  /(^|\/)(\.env(?!\.example$)[^/]*|values-[^/]*\.ya?ml|[^/]*\.(key|pem|p12|pfx|jks))(\/|$)/i.test(path)

export const listedFiles = (root: string): ReadonlyArray<string> =>
  readFileSync(join(root, listPath), "utf8")
    .split("\n")
    .filter((path) => path !== "" && !isSecret(path))

/** The lists as they should be: the repository's texts below docs/, and what it has of the files and folders that the pages lead to. */
export const publishedFiles = (root: string): { readonly [path: string]: string } => {
  if (!existsSync(join(root, ".git"))) return {}
  // Of a file in conflict git names each version.
  const names = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 }).split("\0")
  const known = [...new Set(names)].filter((path) => path !== "" && existsSync(join(root, path))).toSorted()
  const texts = known.filter((path) => path.startsWith("docs/") && path.endsWith(".md"))
  const linked = linkedFrom(root, texts)
  const isLinked = (path: string) => linked.has(path) || ancestors(path).some((folder) => linked.has(folder))
  const published = known.filter((path) => isLinked(path) && !isSecret(path))
  return { [textsPath]: linesOf(texts), [listPath]: linesOf(published) }
}

const linesOf = (paths: ReadonlyArray<string>): string => `${paths.join("\n")}\n`

const linkedFrom = (root: string, texts: ReadonlyArray<string>): ReadonlySet<string> => {
  const all = pagesOf(root, texts)
  const pages = new Map(all.map((page) => [page.source, page]))
  return new Set(
    all.flatMap(({ path, source }) => {
      const text = readFileSync(join(root, source), "utf8")
      return withSiteLinks(text, { source, path, root, base: "/", pages }).files
    })
  )
}

const ancestors = (path: string): ReadonlyArray<string> =>
  path.split("/").map((_, index, parts) => parts.slice(0, index).join("/"))
