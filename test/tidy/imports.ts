/** Which files may import which. */
import { basename, dirname } from "node:path"
import { inSources, isUnder, type Project, type Rule } from "./Rule.ts"
import type { Import, Source } from "./Sources.ts"

const isRelative = ({ target }: Import) => /\.tsx?$/.test(target)
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

/** The contract: all files that a client needs. */
const contractRoots = ({ sources }: Project) =>
  [...sources.keys()].filter((path) => isUnder("src/client")(path) || (inSrc(path) && basename(path) === "Api.ts"))

const contractPackages = /^effect(\/(http|http-api|schema|encoding|net))?$/

const contractHalves = (project: Project, roots = contractRoots(project)): ReadonlySet<string> => {
  const reached = new Set<string>()
  const visit = (path: string) => {
    if (reached.has(path)) return
    reached.add(path)
    for (const { target, typeOnly } of project.sources.get(path)?.imports ?? []) {
      if (inSrc(target) && !typeOnly) visit(target)
    }
  }
  roots.forEach(visit)
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

const inConsole = isUnder("src/console")
const consolePackages = /^(effect\/reactivity|react|react-dom\/client|oauth4webapi|@tanstack\/react-router)$/

const theConsoleIsAClient: Rule = {
  name: "The console imports its packages and the contract, and nothing imports the console",
  find: (project) => {
    const roots = [...project.sources.keys()].filter(inConsole)
    const reached = [...contractHalves(project, roots)].flatMap((path) =>
      (project.sources.get(path)?.imports ?? [])
        .filter((each) => !each.typeOnly && !isRelative(each) && !contractPackages.test(each.target))
        .filter(({ target }) => !(inConsole(path) && consolePackages.test(target)))
        .map(({ line, target }) => ({ path, line, what: `is reached from the console and imports ${target}` }))
    )
    const imported = [...project.sources.values()].flatMap(({ imports, path }) =>
      imports
        .filter(({ target }) => inConsole(target) && !inConsole(path) && !path.startsWith("test/console/"))
        .map(({ line, target }) => ({ path, line, what: `imports ${target}` }))
    )
    return [...reached, ...imported]
  },
  example: { "src/console/Main.tsx": `import { readFileSync } from "node:fs"` }
}

/** Names that exist on Node and Deno only. */
const platformNames = /^(Buffer|process)\b/

const clientsRunInBrowsers: Rule = {
  name: "A client of the contract uses no global of Node, so that it runs in browsers",
  find: (project) =>
    [...contractHalves(project)].flatMap((path) =>
      (project.sources.get(path)?.mentions ?? [])
        .filter(({ what }) => platformNames.test(what))
        .map(({ line, what }) => ({ path, line, what }))
    ),
  example: { "src/orders/Api.ts": `const bytes = Buffer.from("")` }
}

const isHttpHalf = (path: string) => /(^|\/)\w*Http\.ts$/.test(path)

/** Files that must all be listed in one place. */
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

const folderPairs: Rule = {
  name: "No two folders import each other",
  find: ({ sources }) => {
    const between = new Map<string, { readonly path: string; readonly line: number }>()
    for (const { imports, path } of sources.values()) {
      for (const { line, target } of imports) {
        const [from, to] = [dirname(path), dirname(target)]
        if (isUnder("src")(from) && isUnder("src")(to) && from !== to) between.set(`${from} ${to}`, { path, line })
      }
    }
    return [...between].flatMap(([pair, { path, line }]) => {
      const [from, to] = pair.split(" ") as [string, string]
      return between.has(`${to} ${from}`) ? [{ path, line, what: `${from} and ${to}` }] : []
    })
  },
  example: {
    "src/orders/Orders.ts": `import type { Product } from "../products/Product.ts"`,
    "src/products/Product.ts": `import type { Orders } from "../orders/Orders.ts"`
  }
}

const fileCircles: Rule = {
  name: "No files import each other in a circle, types included",
  find: ({ sources }) => {
    const leadsTo = (path: string, goal: string, seen: Set<string>): boolean =>
      (sources.get(path)?.imports ?? []).some(({ target }) => {
        if (target === goal) return true
        if (!inSrc(target) || seen.has(target)) return false
        seen.add(target)
        return leadsTo(target, goal, seen)
      })
    return [...sources.values()]
      .filter(({ path }) => inSrc(path) && leadsTo(path, path, new Set()))
      .map(({ path }) => ({ path, line: 1, what: "imports itself through others" }))
  },
  example: {
    "src/orders/Order.ts": `import type { Orders } from "./Orders.ts"`,
    "src/orders/Orders.ts": `import { Order } from "./Order.ts"`
  }
}

/** Modules that start processes: the program, its commands, and further PostgreSQL servers. */
const startsProcesses =
  /^(node:child_process|playwright-core|test\/support\/(Processes|DatabaseServer)\.ts|src\/postgres\/EmbeddedPostgres\.ts)$/

export const importRules: ReadonlyArray<Rule> = [
  clientsPullInNoServer,
  clientsRunInBrowsers,
  theConsoleIsAClient,
  folderPairs,
  fileCircles,
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
  importRule(
    "The application kit imports nothing but its own folder",
    ({ path }, { target }) => path.startsWith("src/kit/") && dirname(target) !== "src/kit",
    { example: { "src/kit/Judge.ts": `import type { Code } from "../api/ErrorCode.ts"` } }
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
    ({ path }, { target, typeOnly }) =>
      /^src\/licenses\/(rules|changes)\//.test(path) && !typeOnly && /^(effect|@effect|node:)/.test(target),
    { example: { "src/licenses/rules/Refund.ts": `import { Effect } from "effect"` } }
  ),
  importRule(
    "The platform is imported by module, because its barrel pulls in optional packages",
    (_, { target }) => /^@effect\/(platform-node|sql-pg)$/.test(target),
    { example: { "src/Server.ts": `import { NodeRuntime } from "@effect/platform-node"` } }
  ),
  everyoneIsListed(
    "Api.ts lists every group of operations",
    "src/Api.ts",
    (path) => /^src\/(\w+\/){1,2}Api\.ts$/.test(path),
    {
      "src/Api.ts": "",
      "src/orders/Api.ts": ""
    }
  ),
  everyoneIsListed("Server.ts lists every HTTP half", "src/Server.ts", isHttpHalf, {
    "src/Server.ts": "",
    "src/orders/Http.ts": ""
  }),
  importRule(
    "Tests that start processes are slow tests: *.slow.test.ts",
    ({ path }, { target, typeOnly }) =>
      path.endsWith(".test.ts") && !path.endsWith(".slow.test.ts") && !typeOnly && startsProcesses.test(target),
    { example: { "test/cli/Start.test.ts": `import { startService } from "../support/Processes.ts"` } }
  )
]
