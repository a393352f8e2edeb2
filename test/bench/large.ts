/**
 * The cost of a license that many machines share: the same requests to a license with 50,000 devices, 5,000 live
 * floating leases and 200 features, to one that has only the 200 features, and to a small one, in alternating turns.
 * The second shows how much of the difference is due to the longer response, which contains every feature.
 *
 *   npm run bench:large -- [--requests 1000] [--connections 8] [--devices 50000] [--leases 5000] [--features 200]
 *                          [--policies plain,heartbeats,containers] [--only validate,consume] [--against <folder>] [--json]
 *                          [--assert]
 *
 * `heartbeats` requires heartbeats, `containers` limits container instances: each reads activations in a different way.
 * "first use" is a validate of a license that its actor must load first. --assert exits with 1 if a p50 or p99 is more
 * than twice that of the small license, or a request fails; first uses are reported without a target. --against
 * measures the service of another checkout, on its own database, in the same turns.
 */
import { resolve } from "node:path"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Redacted } from "effect"
import { openSession } from "../../src/platform/postgres/driver/Postgres.ts"
import { each, managementOf } from "./load/Licenses.ts"
import { cpuSecondsOfThreads } from "./load/Processes.ts"
import { table } from "./load/Report.ts"
import { say, startOn } from "./load/Service.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { inTurns, quantile, requestsPerTurn, rounded, type TurnSide } from "./load/Turns.ts"
import { crowded, type Size, type Target } from "./rows/largeLicense.ts"
import { firstUse, operationsOf } from "./rows/largeRequests.ts"

const { values: flags } = parseArgs({
  options: {
    requests: { type: "string", default: "1000" },
    connections: { type: "string", default: "8" },
    devices: { type: "string", default: "50000" },
    leases: { type: "string", default: "5000" },
    features: { type: "string", default: "200" },
    policies: { type: "string", default: "plain,heartbeats,containers" },
    only: { type: "string" },
    against: { type: "string" },
    json: { type: "boolean", default: false },
    assert: { type: "boolean", default: false }
  }
})

/** The maximum ratio of an operation's times. */
const ratioMax = 2

const only = flags.only?.split(",")
const features = Number(flags.features)
const small: Size = { devices: 2 * requestsPerTurn, leases: 5, features: 3 }
const sizes = {
  small,
  featured: { ...small, features },
  large: { devices: Number(flags.devices), leases: Number(flags.leases), features }
} satisfies Record<string, Size>
const names = Object.keys(sizes)

const rulesOf: Record<string, object> = {
  plain: {},
  heartbeats: { require_heartbeat: true },
  containers: { max_container_instances: 1_000_000 }
}

interface Measured extends Omit<TurnSide, "name"> {
  /** Seconds of CPU that the service has used. */
  readonly used: () => number
}

const compare = async (
  about: { readonly policy: string; readonly operation: string },
  asked: ReadonlyArray<Measured>,
  requests: number
) => {
  const cpu = asked.map(() => ({ seconds: 0, requests: 0 }))
  const counted = asked.map(({ restMillis, run, used }, index) => ({
    ...(restMillis !== undefined && { restMillis }),
    run: async (requests: number) => {
      const before = used()
      const answered = await run(requests)
      cpu[index]!.seconds += used() - before
      cpu[index]!.requests += requests
      return answered
    }
  }))
  const answered = await inTurns(counted, requests)
  return Array.from({ length: asked.length / names.length }, (_, tree) => {
    const own = names.map((_, index) => tree * names.length + index)
    const at = (share: number) => own.map((index) => quantile(answered[index]!.latencies, share))
    const [p50, p99] = [at(0.5), at(0.99)] as [Array<number>, Array<number>]
    const failed = own.reduce((sum, index) => sum + answered[index]!.failed, 0)
    const ratios = [p50, p99].map(([few, , many]) => many! / few!)
    const columns = (name: string, values: ReadonlyArray<number>, digits?: number) =>
      Object.fromEntries(names.map((size, index) => [`${name}_${size}`, rounded(values[index]!, digits)]))
    return {
      ...about,
      ...(flags.against && { tree: tree === 0 ? "this" : "other" }),
      ...columns("p50", p50),
      ...columns("p99", p99),
      p50_ratio: rounded(ratios[0]!),
      p99_ratio: rounded(ratios[1]!),
      ...columns(
        "cpu_us",
        own.map((index) => (1e6 * cpu[index]!.seconds) / cpu[index]!.requests),
        0
      ),
      failed,
      holds: (about.operation === firstUse || ratios.every((ratio) => ratio <= ratioMax)) && failed === 0
    }
  })
}

/** A service on its own database, with its product and features. */
const startTree = Effect.fnUntraced(function* (url: string, directory: string, folder?: string) {
  const service = yield* startOn(Redacted.make(url), directory, {}, folder)
  const management = yield* Effect.promise(() => managementOf(service.base, service.token))
  const product = yield* Effect.promise(() =>
    management.call<{ id: string }>("/products", { name: "large", code: "large" })
  )
  yield* Effect.promise(() =>
    each(features, async (index) => {
      await management.call(`/products/${product.id}/features`, { name: `Feature ${index}`, code: `feature-${index}` })
    })
  )
  const session = yield* openSession(Redacted.make(url))
  return { base: service.base, used: () => cpuSecondsOfThreads(service.pid), management, session, product: product.id }
})

const startTrees = Effect.gen(function* () {
  const directory = yield* folder
  const { url } = yield* startPostgres(directory)
  const trees = [yield* startTree(Redacted.value(url), directory)]
  if (flags.against === undefined) return trees
  yield* (yield* openSession(url)).values("CREATE DATABASE bench_other")
  const other = new URL(Redacted.value(url))
  other.pathname = "bench_other"
  trees.push(yield* startTree(other.href, directory, resolve(flags.against)))
  return trees
})

const program = Effect.gen(function* () {
  const trees = yield* startTrees
  const rows: Array<Awaited<ReturnType<typeof compare>>[number]> = []
  for (const policy of flags.policies.split(",")) {
    const rules = rulesOf[policy]
    if (rules === undefined) throw new Error(`--policies takes some of: ${Object.keys(rulesOf).join(", ")}`)
    const all: Array<{ readonly tree: (typeof trees)[number]; readonly target: Target }> = []
    for (const tree of trees) {
      for (const [name, size] of Object.entries(sizes)) {
        yield* say(`${policy}: making the ${name} license`)
        const { management, product, session } = tree
        all.push({ tree, target: yield* crowded(management, session, product, `${policy}-${name}`, rules, size) })
      }
      // A server that has run for a while reuses old WAL segments; a new one would create each while commits wait.
      yield* tree.session.values("CHECKPOINT")
    }
    const sessions = all.map(({ target, tree }) => ({
      ...operationsOf(tree.base, tree.session, target, Number(flags.connections)),
      used: tree.used
    }))
    for (const [index, { name: operation }] of sessions[0]!.operations.entries()) {
      if (only !== undefined && !only.includes(operation)) continue
      const asked = sessions.map(({ operations, used }) => ({ ...operations[index]!, used }))
      rows.push(...(yield* Effect.promise(() => compare({ policy, operation }, asked, Number(flags.requests)))))
    }
    for (const { close } of sessions) close()
  }
  yield* Effect.sync(() => process.stdout.write(`${flags.json ? JSON.stringify(rows, null, 2) : table(rows)}\n`))
  if (flags.assert && rows.some(({ holds }) => !holds)) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(Effect.scoped(program))
