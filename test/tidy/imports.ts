/** Who may import whom. */
import { basename, dirname } from "node:path"
import { inSources, isUnder, type Project, type Rule } from "./Rule.ts"
import type { Import, Source } from "./Sources.ts"

const isRelative = ({ target }: Import) => target.endsWith(".ts")
const inSrc = isUnder("src")

const importRule = (
  name: string,
  isForbidden: (source: Source, target: Import) => boolean,
  rest: Pick<Rule, "example" | "exceptions">
): Rule => ({
  name,
  find: inSources((source) =>
    source.imports
      .filter((target) => isForbidden(source, target))
      .map(({ line, target }) => ({ line, what: `imports ${target}` }))
  ),
  ...rest
})

/** The contract: what a client needs, reached from the tables of contents. */
const contractRoots = ({ sources }: Project) =>
  [...sources.keys()].filter((path) => path === "src/Client.ts" || (inSrc(path) && basename(path) === "Api.ts"))

const contractPackages = /^effect(\/(http|http-api|schema|encoding|net))?$/

const contractHalves = (project: Project): ReadonlySet<string> => {
  const reached = new Set<string>()
  const visit = (path: string) => {
    if (reached.has(path)) return
    reached.add(path)
    for (const { target, typeOnly } of project.sources.get(path)?.imports ?? []) {
      if (inSrc(target) && !typeOnly) visit(target)
    }
  }
  contractRoots(project).forEach(visit)
  return reached
}

const clientsPullInNoServer: Rule = {
  name: "A client of the contract pulls in no server code",
  find: (project) =>
    [...contractHalves(project)].flatMap((path) =>
      (project.sources.get(path)?.imports ?? [])
        .filter((each) => !each.typeOnly && !isRelative(each) && !contractPackages.test(each.target))
        .map(({ line, target }) => ({ path, line, what: `is reached from an Api.ts and imports ${target}` }))
    ),
  example: {
    "src/orders/Api.ts": `import { Orders } from "./Orders.ts"`,
    "src/orders/Orders.ts": `import { SqlClient } from "effect/sql"`
  }
}

const isHttpHalf = (path: string) => /(^|\/)\w*Http\.ts$/.test(path)

/** Files of which every one has to be listed in one place. */
const everyoneIsListed = (
  name: string,
  list: string,
  isListed: (path: string) => boolean,
  example: Rule["example"]
): Rule => ({
  name,
  find: ({ sources }) => {
    const listed = new Set(sources.get(list)?.imports.map(({ target }) => target))
    return [...sources.keys()]
      .filter((path) => inSrc(path) && isListed(path) && !listed.has(path))
      .map((path) => ({ path, line: 1, what: `is missing in ${list}` }))
  },
  example
})

/** What rules are made of. A rule itself is known by its answers: it accepts or rejects. */
const ruleParts =
  /^src\/licenses\/(CommittedState|Draft|Entitlement|LicenseCommand|LicenseState|Lifecycle|Linkage|Terms)\.ts$/
const answersCommands = ({ imports }: Source) =>
  imports.some(({ target, typeOnly }) => target === "src/licenses/LicenseCommand.ts" && !typeOnly)

export const importRules: ReadonlyArray<Rule> = [
  clientsPullInNoServer,
  importRule(
    "The service imports neither tests nor scripts",
    ({ path }, { target }) => inSrc(path) && /^(test|infra)\//.test(target),
    {
      example: { "src/a/B.ts": `import { x } from "../../test/support/X.ts"` }
    }
  ),
  importRule(
    "Nothing imports from outside the project",
    (_, each) => each.target.startsWith("..") || /^\/|^file:/.test(each.target),
    {
      example: { "src/a/B.ts": `import { x } from "/elsewhere/X.ts"` }
    }
  ),
  importRule(
    "Only Server.ts imports the HTTP halves",
    ({ path }, { target }) => inSrc(path) && path !== "src/Server.ts" && isHttpHalf(target),
    { example: { "src/orders/Orders.ts": `import { OrdersHttp } from "./Http.ts"` } }
  ),
  importRule("Nothing imports main.ts", (_, { target }) => target === "src/main.ts", {
    example: { "src/Server.ts": `import "./main.ts"` }
  }),
  importRule(
    "api/ knows no slice",
    ({ path }, each) => path.startsWith("src/api/") && isRelative(each) && dirname(each.target) !== "src/api",
    { example: { "src/api/Text.ts": `import { Product } from "../products/Product.ts"` } }
  ),
  importRule(
    "Only postgres/ knows the database driver",
    ({ path }, { target }) => target.startsWith("@effect/sql-pg") && dirname(path) !== "src/postgres",
    { example: { "src/orders/Orders.ts": `import * as PgClient from "@effect/sql-pg/PgClient"` } }
  ),
  importRule(
    "License rules decide without Effect, clock or storage",
    (source, { target, typeOnly }) =>
      (ruleParts.test(source.path) || answersCommands(source)) && !typeOnly && /^(effect|@effect|node:)/.test(target),
    {
      example: {
        "src/licenses/Anew.ts": `import { accept } from "./LicenseCommand.ts"\nimport { Effect } from "effect"`
      },
      exceptions: {
        "src/licenses/Entitlement.ts":
          "The payload's schema stands beside the function that fills it, which uses no Effect."
      }
    }
  ),
  importRule(
    "The platform is imported by module, because its barrel pulls in optional packages",
    (_, { target }) => /^@effect\/(platform-node|sql-pg)$/.test(target),
    { example: { "src/Server.ts": `import { NodeRuntime } from "@effect/platform-node"` } }
  ),
  everyoneIsListed("Api.ts lists every group of operations", "src/Api.ts", (path) => /^src\/\w+\/Api\.ts$/.test(path), {
    "src/Api.ts": "",
    "src/orders/Api.ts": ""
  }),
  everyoneIsListed("Server.ts lists every HTTP half", "src/Server.ts", isHttpHalf, {
    "src/Server.ts": "",
    "src/orders/Http.ts": ""
  })
]
