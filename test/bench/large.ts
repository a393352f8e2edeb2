/**
 * What a license costs that many machines share: the same requests to a license with 50,000 devices, 5,000 live floating leases
 * and 200 features, to one that has nothing but the 200 features, and to a small one, in turns. The one in between tells what
 * of the difference is the longer answer, which names every feature.
 *
 *   npm run bench:large -- [--requests 1000] [--connections 8] [--devices 50000] [--leases 5000] [--features 200]
 *                          [--policies plain,heartbeats,containers] [--only validate,consume] [--json] [--assert]
 *
 * `heartbeats` requires heartbeats, `containers` limits container instances: both look at activations in their own way. "first use"
 * is a validate of a license whose actor must load it anew. --assert ends with 1 where a p50 or p99 is more than twice that of the
 * small license, or a request fails; first uses are told, not judged.
 */
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect } from "effect"
import { openSession } from "../../src/postgres/Postgres.ts"
import { each, managementOf } from "./Licenses.ts"
import { crowded, type Size, type Target } from "./largeLicense.ts"
import { firstUse, operationsOf } from "./largeRequests.ts"
import { table } from "./Report.ts"
import { say, startOn } from "./Service.ts"
import { folder, startPostgres } from "./Sides.ts"
import { type Asked, inTurns, quantile, rounded, turn } from "./Turns.ts"

const { values: flags } = parseArgs({
  options: {
    requests: { type: "string", default: "1000" },
    connections: { type: "string", default: "8" },
    devices: { type: "string", default: "50000" },
    leases: { type: "string", default: "5000" },
    features: { type: "string", default: "200" },
    policies: { type: "string", default: "plain,heartbeats,containers" },
    only: { type: "string" },
    json: { type: "boolean", default: false },
    assert: { type: "boolean", default: false }
  }
})

/** How many times slower an operation may be. */
const ratioMax = 2
/** Uses of a license that is not in memory: each is a load. */
const firstUses = 50

const only = flags.only?.split(",")
const features = Number(flags.features)
const small: Size = { devices: 2 * turn, leases: 5, features: 3 }
const sizes = {
  small,
  featured: { ...small, features },
  large: { devices: Number(flags.devices), leases: Number(flags.leases), features }
} satisfies Record<string, Size>

const rulesOf: Record<string, object> = {
  plain: {},
  heartbeats: { require_heartbeat: true },
  containers: { max_container_instances: 1_000_000 }
}

const compare = async (
  policy: string,
  operation: string,
  asked: ReadonlyArray<Omit<Asked, "name">>,
  requests: number
) => {
  const answered = await inTurns(asked, requests)
  const at = (share: number) => answered.map(({ latencies }) => quantile(latencies, share))
  const [p50, p99] = [at(0.5), at(0.99)] as [Array<number>, Array<number>]
  const failed = answered.reduce((sum, side) => sum + side.failed, 0)
  const ratios = [p50, p99].map(([few, , many]) => many! / few!)
  const names = Object.keys(sizes)
  return {
    policy,
    operation,
    ...Object.fromEntries(names.map((name, index) => [`p50_${name}_ms`, rounded(p50[index]!)])),
    ...Object.fromEntries(names.map((name, index) => [`p99_${name}_ms`, rounded(p99[index]!)])),
    p50_ratio: rounded(ratios[0]!),
    p99_ratio: rounded(ratios[1]!),
    failed,
    holds: ratios.every((ratio) => ratio <= ratioMax) && failed === 0
  }
}

const startMeasured = Effect.gen(function* () {
  const directory = yield* folder
  const postgres = yield* startPostgres(directory)
  const service = yield* startOn(postgres.url, directory)
  const management = yield* Effect.promise(() => managementOf(service.base, service.token))
  return { base: service.base, management, session: yield* openSession(postgres.url) }
})

const program = Effect.gen(function* () {
  const { base, management, session } = yield* startMeasured
  const rows: Array<Awaited<ReturnType<typeof compare>>> = []
  const product = yield* Effect.promise(() =>
    management.call<{ id: string }>("/products", { name: "large", code: "large" })
  )
  yield* Effect.promise(() =>
    each(features, async (index) => {
      await management.call(`/products/${product.id}/features`, { name: `Feature ${index}`, code: `feature-${index}` })
    })
  )
  for (const policy of flags.policies.split(",")) {
    const rules = rulesOf[policy]
    if (rules === undefined) throw new Error(`--policies takes some of: ${Object.keys(rulesOf).join(", ")}`)
    const targets: Array<Target> = []
    for (const [name, size] of Object.entries(sizes)) {
      yield* say(`${policy}: making the ${name} license`)
      targets.push(yield* crowded(management, session, product.id, `${policy}-${name}`, rules, size))
    }
    // A server that has run for a while has old segments of its log to write over; a new one would make each while commits wait.
    yield* session.values("CHECKPOINT")
    const all = targets.map((target) => operationsOf(base, target, Number(flags.connections)))
    for (const [index, { name }] of all[0]!.operations.entries()) {
      if (only !== undefined && !only.includes(name)) continue
      const asked = all.map(({ operations }) => operations[index]!)
      rows.push(yield* Effect.promise(() => compare(policy, name, asked, Number(flags.requests))))
    }
    const first = yield* Effect.forEach(targets, (target) => firstUse(management, session, target))
    const { holds: _, ...told } = yield* Effect.promise(() => compare(policy, "first use", first, firstUses))
    rows.push({ ...told, holds: true })
    for (const { close } of all) close()
  }
  yield* Effect.sync(() => process.stdout.write(`${flags.json ? JSON.stringify(rows, null, 2) : table(rows)}\n`))
  if (flags.assert && rows.some(({ holds }) => !holds)) yield* Effect.sync(() => (process.exitCode = 1))
})

NodeRuntime.runMain(Effect.scoped(program))
