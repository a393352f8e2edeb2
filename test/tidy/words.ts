/** Words that the project's texts do not contain: nothing about the machine or the process by which it was written. */
import { inLines, type Rule } from "./Rule.ts"

const wordRule = (name: string, pattern: RegExp, example: string, path = "docs/a.md"): Rule => ({
  name,
  find: inLines(pattern),
  example: { [path]: example }
})

const versionsOf = (manifest: string): ReadonlyArray<readonly [string, string]> => {
  const { dependencies, devDependencies, overrides } = JSON.parse(manifest) as Record<string, Record<string, string>>
  return [dependencies, devDependencies, overrides].flatMap((versions) => Object.entries(versions ?? {}))
}

interface Locked {
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** The project's own, and those of the tools in infra. */
const isManifest = (path: string) => /^(infra\/\w+\/)?package\.json$/.test(path)
const isLock = (path: string) => /^(infra\/\w+\/)?package-lock\.json$/.test(path)

/** `npm ci` refuses a lock file that lacks an optional package, on every platform. */
const missingPlatforms = (path: string, lock: string) => {
  const { packages } = JSON.parse(lock) as { readonly packages: Readonly<Record<string, Locked>> }
  const wanted = Object.values(packages).flatMap(({ optionalDependencies }) => Object.keys(optionalDependencies ?? {}))
  return wanted
    .filter((name) => !Object.keys(packages).some((key) => key.endsWith(`node_modules/${name}`)))
    .map((name) => ({ path, line: 1, what: name }))
}

const termsOf = (glossary = "") =>
  glossary.split("\n").flatMap((text, index) => {
    const [, what = ""] = /^\| (.+?) \|/.exec(text) ?? []
    return what === "" || what === "Term" ? [] : [{ line: index + 1, what: what.toLowerCase() }]
  })

export const wordRules: ReadonlyArray<Rule> = [
  wordRule(
    "No text names a folder of the machine it was written on",
    /(?<![\w.])\/(home|root|Users|work)\/[\w.-]+/,
    ["see ", "home", "someone", "notes"].join("/")
  ),
  wordRule(
    "No text points at what lies beside the project",
    /(?<![\w./])\.\.\/(?!\.)(?!src\/|test\/|schema\/|docs\/|infra\/)[a-z]+\/[\w-]+\.(md|mjs|json)\b/,
    ["see ..", "beside", "notes.md"].join("/")
  ),
  wordRule(
    "No text speaks of who or what wrote it",
    /\b(sub-?agent|this sessio[n]|helper \d)\b/i,
    ["Left by this", "session"].join(" ")
  ),
  wordRule(
    "Nothing is left to do without a place where it is tracked",
    /\b(TO[D]O|FIX[M]E)\b(?!\(#\d+\))/,
    ["// TO", "DO later"].join(""),
    "src/a/B.ts"
  ),
  {
    name: "Lock files record no download addresses",
    find: inLines(/"resolved": "http[^"]*"/, isLock),
    example: { "package-lock.json": `  "resolved": "https://packages.example.com/x.tgz"` }
  },
  {
    name: "Lock files name no versions of Node, of which npm would warn (node infra/scripts/complete-lock.mjs removes them)",
    find: inLines(/"node": "(?!\d+\.\d+\.\d+"|bin\/)[^"]*"/, isLock),
    example: { "infra/deno/package-lock.json": `        "node": ">=22.19.0"` }
  },
  {
    name: "Lock files name the packages of every platform (node infra/scripts/complete-lock.mjs adds them)",
    find: ({ texts }) => [...texts].flatMap(([path, text]) => (isLock(path) ? missingPlatforms(path, text) : [])),
    example: {
      "package-lock.json": `{"packages": {"node_modules/a": {"optionalDependencies": {"a-win32-x64": "1.0.0"}}}}`
    }
  },
  {
    name: "The glossary explains each term once",
    find: ({ texts }) => {
      const terms = termsOf(texts.get("docs/GLOSSARY.md"))
      return terms
        .filter(({ what }, index) => terms.findIndex((term) => term.what === what) < index)
        .map(({ line, what }) => ({ path: "docs/GLOSSARY.md", line, what }))
    },
    example: { "docs/GLOSSARY.md": "| Term | Meaning |\n|---|---|\n| lease | a seat |\n| lease | a delivery |\n" }
  },
  {
    name: "Versions are pinned exactly",
    find: ({ texts }) =>
      [...texts].flatMap(([path, text]) =>
        (isManifest(path) ? versionsOf(text) : [])
          .filter(([, version]) => !/^(npm:[@\w./-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
          .map(([name, version]) => ({ path, line: 1, what: `${name} ${version}` }))
      ),
    example: { "package.json": `{"dependencies": {"effect": "^4.1.0"}}` }
  }
]
