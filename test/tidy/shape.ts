/** Locations, names and lengths of files. */
import { basename, dirname } from "node:path"
import { inSources, isUnder, type Project, type Rule } from "./Rule.ts"

const fileLinesMax = 300
const functionLinesMax = 60
const wholeFunctionLinesMax = 120
const folderFilesMax = 20

const pathRule = (
  name: string,
  isWrong: (path: string, project: Project) => boolean,
  rest: Pick<Rule, "example" | "exceptions">
): Rule => ({
  name,
  find: (project) =>
    [...project.sources.keys()]
      .filter((path) => isWrong(path, project))
      .map((path) => ({ path, line: 1, what: basename(path) })),
  ...rest
})

const inSrc = isUnder("src")
const hasRooms = (path: string) => inSrc(path) || path.startsWith("test/")
const isNamedOnce = (path: string) =>
  inSrc(path) && dirname(path) !== "src" && !isUnder("src/clients")(path) && !/^(Api|Http)\.ts$/.test(basename(path))
const empty = (path: string) => ({ [path]: "" })

const isLongest = (what: string, count: number, max: number, unit = "lines") =>
  `${what} has ${count} ${unit}, ${max} are the most`

/** Test folders without a folder of the same name in src. */
const freeTests =
  /^test\/(tidy|bench|support|contract|simulation|verifying|faults|schema|infra|clients\/(console|portal))(\/|\.)/

export const shapeRules: ReadonlyArray<Rule> = [
  {
    name: `No file is longer than ${fileLinesMax} lines`,
    find: inSources(({ path, text }) => {
      const lines = text.trimEnd().split("\n").length
      return lines > fileLinesMax
        ? [{ line: fileLinesMax + 1, what: isLongest(basename(path), lines, fileLinesMax) }]
        : []
    }),
    example: { "src/a/Long.ts": "export {}\n".repeat(fileLinesMax + 1) }
  },
  {
    name: `No function has more than ${functionLinesMax} lines of its own`,
    find: inSources(({ functions }) =>
      functions
        .filter(({ ownLines }) => ownLines > functionLinesMax)
        .map(({ line, name, ownLines }) => ({ line, what: isLongest(name, ownLines, functionLinesMax) }))
    ),
    example: { "src/a/Long.ts": `const long = () => {\n${"  void 0\n".repeat(functionLinesMax)}}\n` }
  },
  {
    name: `No function of the service has more than ${wholeFunctionLinesMax} lines, its inner functions included`,
    find: inSources(({ functions, path }) =>
      functions
        .filter(({ allLines }) => inSrc(path) && allLines > wholeFunctionLinesMax)
        .map(({ allLines, line, name }) => ({ line, what: isLongest(name, allLines, wholeFunctionLinesMax) }))
    ),
    example: {
      "src/a/Long.ts": `const long = () => {\n${"  const inner = () => {\n    void 0\n  }\n".repeat(wholeFunctionLinesMax / 3)}}\n`
    },
    exceptions: Object.fromEntries(
      [
        "src/insight/reports/exports/Exports.ts",
        "src/ledger/webhooks/Webhooks.ts",
        "src/vendor/apiKeys/ApiKeys.ts"
      ].map((path) => [path, "Operations of a slice, one after another: they share services, and no variable changes."])
    )
  },
  pathRule(
    "Files of the service are called after what they hold",
    (path) => inSrc(path) && !/\/([A-Z][A-Za-z0-9]*|main)\.tsx?$/.test(path),
    {
      example: empty("src/products/product.ts")
    }
  ),
  pathRule(
    "Folders of the service are at most three levels deep and in lower camel case",
    (path) => inSrc(path) && !/^src\/([a-z][A-Za-z]*\/){0,3}\w+\.tsx?$/.test(path),
    {
      example: empty("src/vendor/products/parts/more/Product.ts")
    }
  ),
  {
    name: `No folder of the service or of its tests has more than ${folderFilesMax} files`,
    find: ({ sources }) => {
      const folders = Map.groupBy([...sources.keys()].filter(hasRooms), dirname)
      return [...folders]
        .filter(([, files]) => files.length > folderFilesMax)
        .map(([path, { length }]) => ({ path, line: 1, what: isLongest(path, length, folderFilesMax, "files") }))
    },
    example: Object.fromEntries(Array.from({ length: folderFilesMax + 1 }, (_, index) => [`src/a/B${index}.ts`, ""]))
  },
  {
    name: "No room of the service has one file only",
    find: ({ sources }) =>
      [...Map.groupBy([...sources.keys()].filter(inSrc), dirname)]
        .filter(([folder, files]) => folder.split("/").length > 2 && files.length === 1)
        .map(([path, files]) => ({ path, line: 1, what: `has only ${basename(files[0]!)}` })),
    example: empty("src/vendor/orders/Order.ts")
  },
  {
    name: "No two files of the service have the same name; the halves of slices, the clients and the lists may",
    find: ({ sources }) =>
      [...Map.groupBy([...sources.keys()].filter(isNamedOnce), (path) => basename(path))].flatMap(([, paths]) =>
        paths.length === 1 ? [] : paths.map((path) => ({ path, line: 1, what: `shares its name: ${paths.join(", ")}` }))
      ),
    example: { "src/vendor/orders/Link.ts": "", "src/ledger/webhooks/Link.ts": "" }
  },
  pathRule(
    "There are no barrels and no drawers",
    (path) => /^(index|(.*(utils?|helpers?|common|misc|shared|constants|types)))\.tsx?$/i.test(basename(path)),
    {
      example: empty("src/products/index.ts"),
      exceptions: { "infra/pages/.vitepress/theme/index.ts": "The site's tool looks for a file with this name." }
    }
  ),
  pathRule(
    "A slice with an Api.ts has an Http.ts, and the other way round",
    (path, { sources }) => {
      const other = { "Api.ts": "Http.ts", "Http.ts": "Api.ts" }[basename(path)]
      return inSrc(path) && dirname(path) !== "src" && other !== undefined && !sources.has(`${dirname(path)}/${other}`)
    },
    { example: empty("src/orders/Api.ts") }
  ),
  pathRule(
    "A test lies in the folder of what it tests",
    (path, { sources }) =>
      path.endsWith(".test.ts") &&
      !freeTests.test(path) &&
      ![...sources.keys()].some(isUnder(dirname(path).replace(/^test/, "src"))),
    { example: empty("test/vendor/nothing/Nothing.test.ts") }
  ),
  pathRule(
    "Test files end in .test.ts, or their names say that they are none",
    (path) => /^test\/.*(Test|_test|\.spec)\.ts$/.test(path),
    {
      example: empty("test/products/Products.spec.ts")
    }
  )
]
