/** Links to pages of the documentation site, if the service has one. */
import { type ReactNode, useEffect, useState } from "react"
import { service } from "../service/Address.ts"

let asked: Promise<ReadonlySet<string>> | undefined

/** The index for language models lists the site's pages. */
const askPages = () => {
  asked ??= fetch(`${service}/llms.txt`)
    .then((response) => response.text())
    .then(
      (text) => new Set([...text.matchAll(/\/docs\/([\w/-]+)\.md\)/g)].map(([, path]) => path!)),
      () => new Set<string>()
    )
  return asked
}

interface Props {
  /** The page's path, without its ending. */
  readonly page: string
  readonly part?: string
  readonly children: ReactNode
}

/** The text, as a link if there is such a page. */
export const DocsLink = ({ children, page, part }: Props) => {
  const [pages, setPages] = useState<ReadonlySet<string>>()
  useEffect(() => {
    void askPages().then(setPages)
  }, [])
  return pages?.has(page) ? (
    <a href={`${service}/docs/${page}.html${part === undefined ? "" : `#${part}`}`}>{children}</a>
  ) : (
    children
  )
}
