/** A tidy rule: a sentence, a search, exceptions with their reasons, and an example that the search must find. */
import { readProjects, type Source, type Texts } from "./Sources.ts"

export interface Finding {
  readonly path: string
  readonly line: number
  readonly what: string
}

/** The project as rules see it. */
export interface Project {
  /** Every TypeScript file, by its path. */
  readonly sources: ReadonlyMap<string, Source>
  /** Every text file, TypeScript or not, by its path. */
  readonly texts: Texts
}

export interface Rule {
  /** A sentence about the project. */
  readonly name: string
  readonly find: (project: Project) => ReadonlyArray<Finding>
  /** Paths that may break the rule, each with its reason. An exception that is no longer needed fails the test. */
  readonly exceptions?: Readonly<Record<string, string>>
  /** Files that break the rule, which prove that the search works. */
  readonly example: Readonly<Record<string, string>>
}

export const readAll = (projects: ReadonlyArray<Texts>): ReadonlyArray<Project> => {
  const isTypeScript = (path: string) => /\.tsx?$/.test(path) && !path.endsWith(".d.ts")
  const sources = readProjects(projects.map((texts) => new Map([...texts].filter(([path]) => isTypeScript(path)))))
  return projects.map((texts, index) => ({ texts, sources: sources[index]! }))
}

/** Findings in each TypeScript file by itself. */
export const inSources =
  (search: (source: Source) => ReadonlyArray<Omit<Finding, "path">>) =>
  ({ sources }: Project): ReadonlyArray<Finding> =>
    [...sources.values()].flatMap((source) => search(source).map((finding) => ({ path: source.path, ...finding })))

/** Findings in each text file, line by line. */
export const inLines =
  (pattern: RegExp, isWanted: (path: string) => boolean = () => true) =>
  ({ texts }: Project): ReadonlyArray<Finding> =>
    [...texts].flatMap(([path, text]) =>
      isWanted(path)
        ? text.split("\n").flatMap((line, index) => {
            const [what] = pattern.exec(line) ?? []
            return what === undefined ? [] : [{ path, line: index + 1, what }]
          })
        : []
    )

export const isUnder = (folder: string) => (path: string) => path.startsWith(`${folder}/`)
