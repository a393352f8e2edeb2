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
  [...sources.keys()].filter(
    (path) => isUnder("src/clients/client")(path) || (inSrc(path) && basename(path) === "Api.ts")
  )

const contractPackages = /^effect(\/(http|http-api|schema|encoding\/Base64Url|net))?$/

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

const inConsole = isUnder("src/clients/console")
const consolePackages = /^(effect\/reactivity|react|react-dom(\/client)?|oauth4webapi|@tanstack\/react-router)$/

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
        .filter(
          ({ target }) => inConsole(target) && !inConsole(path) && !/^test\/clients\/(console|portal)\//.test(path)
        )
        .filter(({ target }) => !(inPortal(path) && isUnder("src/clients/console/look")(target)))
        .map(({ line, target }) => ({ path, line, what: `imports ${target}` }))
    )
    return [...reached, ...imported]
  },
  example: { "src/clients/console/Main.tsx": `import { readFileSync } from "node:fs"` }
}

const inPortal = isUnder("src/clients/portal")
const portalPackages = /^(react|react-dom\/client|qr(\/decode\.js)?)$/

const thePortalIsSmall = importRule(
  "The customer's page contains its packages and the console's look, of all else only types",
  ({ path }, { target, typeOnly }) =>
    inPortal(path) &&
    !typeOnly &&
    !inPortal(target) &&
    !isUnder("src/clients/console/look")(target) &&
    !portalPackages.test(target),
  { example: { "src/clients/portal/Main.tsx": `import { Effect } from "effect"` } }
)

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

/** The wings of src. Each imports itself and the wings before it, and no wing imports a list at the top of src. */
const wings = ["contract", "platform", "access", "ledger", "vendor", "licensing", "insight", "edge", "clients", "tools"]
const wingOf = (path: string) => path.split("/")[1] ?? ""

/** `Api.ts` only lists the contract halves, and the groups of operations are taken from it. */
const isUpward = ({ path }: Source, { target }: Import) =>
  inSrc(path) &&
  inSrc(target) &&
  dirname(path) !== "src" &&
  target !== "src/Api.ts" &&
  wings.indexOf(wingOf(path)) < (wings.includes(wingOf(target)) ? wings.indexOf(wingOf(target)) : wings.length)

const folderCircles: Rule = {
  name: "No folders import each other in a circle of any length, types included",
  find: ({ sources }) => {
    const folders = new Map<string, Map<string, { readonly path: string; readonly line: number }>>()
    for (const { imports, path } of sources.values()) {
      const from = dirname(path)
      if (!inSrc(path) || from === "src") continue
      const targets = folders.get(from) ?? new Map()
      for (const { line, target } of imports) {
        const to = dirname(target)
        if (inSrc(target) && to !== "src" && to !== from) targets.set(to, { path, line })
      }
      folders.set(from, targets)
    }
    const leadsTo = (from: string, goal: string, seen: Set<string>): boolean =>
      [...(folders.get(from)?.keys() ?? [])].some((to) => {
        if (to === goal) return true
        if (seen.has(to)) return false
        seen.add(to)
        return leadsTo(to, goal, seen)
      })
    return [...folders].flatMap(([from, targets]) =>
      [...targets]
        .filter(([to]) => leadsTo(to, from, new Set()))
        .map(([to, place]) => ({ ...place, what: `${from} imports ${to}, which leads back` }))
    )
  },
  example: {
    "src/vendor/orders/Orders.ts": `import type { Product } from "../products/Product.ts"`,
    "src/vendor/products/Product.ts": `import type { Plan } from "../plans/Plan.ts"`,
    "src/vendor/plans/Plan.ts": `import type { Orders } from "../orders/Orders.ts"`
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
  /^(node:child_process|playwright-core|test\/support\/(processes\/Processes|database\/DatabaseServer)\.ts|src\/platform\/postgres\/embedded\/EmbeddedPostgres\.ts)$/

export const importRules: ReadonlyArray<Rule> = [
  clientsPullInNoServer,
  clientsRunInBrowsers,
  theConsoleIsAClient,
  thePortalIsSmall,
  folderCircles,
  importRule("Wings import in one direction", isUpward, {
    example: { "src/platform/postgres/Sql.ts": `import { License } from "../../licensing/model/License.ts"` }
  }),
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
    ({ path }, { target }) => path.startsWith("src/clients/kit/") && !target.startsWith("src/clients/kit/"),
    {
      exceptions: { "src/clients/kit/machine/ThisMachine.ts": "Asks the operating system for the machine's id." },
      example: { "src/clients/kit/judging/Judge.ts": `import type { Code } from "../../../contract/api/ErrorCode.ts"` }
    }
  ),
  importRule("Nothing imports main.ts", (_, { target }) => target === "src/main.ts", {
    example: { "src/Server.ts": `import "./main.ts"` }
  }),
  importRule(
    "contract/ knows no slice",
    ({ path }, each) => isUnder("src/contract")(path) && isRelative(each) && !isUnder("src/contract")(each.target),
    { example: { "src/contract/api/Text.ts": `import { Product } from "../../vendor/products/Product.ts"` } }
  ),
  importRule(
    "Only platform/postgres/ knows the database driver",
    ({ path }, { target }) => target.startsWith("@effect/sql-pg") && !isUnder("src/platform/postgres")(path),
    { example: { "src/orders/Orders.ts": `import * as PgClient from "@effect/sql-pg/PgClient"` } }
  ),
  importRule(
    "License rules decide without Effect, clock or storage",
    ({ path }, { target, typeOnly }) =>
      /^src\/licensing\/(rules|changes)\//.test(path) && !typeOnly && /^(effect|@effect|node:)/.test(target),
    { example: { "src/licensing/rules/Refund.ts": `import { Effect } from "effect"` } }
  ),
  importRule(
    "The platform is imported by module, because its barrel pulls in optional packages",
    (_, { target }) => /^@effect\/(platform-node|sql-pg)$/.test(target),
    { example: { "src/Server.ts": `import { NodeRuntime } from "@effect/platform-node"` } }
  ),
  importRule(
    "The service imports single modules of encoding, observability and reactivity, because each module that is loaded takes memory",
    ({ path }, { target }) =>
      inSrc(path) && !isUnder("src/clients")(path) && /^effect\/(encoding|observability|reactivity)$/.test(target),
    { example: { "src/Server.ts": `import { Base64 } from "effect/encoding"` } }
  ),
  everyoneIsListed(
    "Api.ts lists every group of operations",
    "src/Api.ts",
    (path) => /^src\/(\w+\/){1,3}Api\.ts$/.test(path),
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
    {
      example: { "test/tools/cli/Start.test.ts": `import { startService } from "../../support/processes/Processes.ts"` }
    }
  )
]
