/** The blocks of code in the project's texts. */
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../..", import.meta.url))

export interface Block {
  readonly page: string
  /** Empty for a block without a language: what a program prints, or a formula. */
  readonly language: string
  readonly code: string
  /** The headings above it. */
  readonly heading: string
}

/** Every text that users and maintainers read. */
export const pages: ReadonlyArray<string> = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "SECURITY.md",
  ...readdirSync(`${root}/docs`, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`)
    .sort()
]

export const blocksOf = (page: string): ReadonlyArray<Block> => {
  const text = readFileSync(`${root}/${page}`, "utf8")
  return Array.from(
    text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm),
    ({ 0: whole, 1: language = "", 2: code = "", index }) => {
      const headings = [...text.slice(0, index).matchAll(/^#+ (.+)$/gm)]
      return { page, language, code: whole === "" ? "" : code, heading: headings.at(-1)?.[1] ?? "" }
    }
  )
}
