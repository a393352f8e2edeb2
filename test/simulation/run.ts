/**
 * Runs seeds of the simulator, one after the other, until one fails or all are done.
 *
 *   npm run simulate -- [--seeds 100] [--from 1] [--steps 40]   many seeds
 *   npm run simulate -- --seed 7 [--steps 40]                   one, again
 *
 * Then it tells how often each command, answer and fault took place, and which never did. --verbose names each seed's digest,
 * the same for two runs in which the same happened; --story tells all of it. --overlap 4 lets the database work on four things at a time, as it does in
 * earnest: a wider search, but then the machine has its say in who is first, and a seed need not fail again.
 *
 * On an embedded PostgreSQL of its own, or in a database of its own on the server that LICENSING_TEST_DATABASE_URL names.
 */
import { parseArgs } from "node:util"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Context, Effect, Layer, Option, Redacted, References } from "effect"
import { Hex } from "effect/encoding"
import { EmbeddedPostgres } from "../../src/postgres/EmbeddedPostgres.ts"
import { run } from "../../src/postgres/Migrations.ts"
import { openSession } from "../../src/postgres/Postgres.ts"
import { serverFolder } from "../support/DatabaseServer.ts"
import { openArena } from "./Arena.ts"
import { simulate } from "./Simulation.ts"
import { expectedTally } from "./Tally.ts"

const { values: flags } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string", default: "100" },
    from: { type: "string", default: "1" },
    steps: { type: "string", default: "40" },
    overlap: { type: "string", default: "1" },
    verbose: { type: "boolean", default: false },
    story: { type: "boolean", default: false }
  }
})

const embedded = Effect.gen(function* () {
  const directory = yield* serverFolder
  const settings = { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_connections: "300" }
  return Context.get(yield* Layer.build(EmbeddedPostgres.layer({ directory, settings })), EmbeddedPostgres).url
})

/** A database of its own, with every table, dropped at the end. */
const database = Effect.gen(function* () {
  const given = yield* Config.option(Config.Redacted("LICENSING_TEST_DATABASE_URL"))
  const server = Option.isSome(given) ? given.value : yield* embedded
  const name = `licensing_simulation_${Hex.random(12)}`
  const admin = yield* openSession(server)
  yield* Effect.acquireRelease(admin.values(`CREATE DATABASE ${name}`), () =>
    Effect.orDie(admin.values(`DROP DATABASE ${name} WITH (FORCE)`))
  )
  const url = new URL(Redacted.value(server))
  url.pathname = name
  yield* run({ url: Redacted.make(url.href) })
  return Redacted.make(url.href)
})

const say = (line: string) => Effect.sync(() => process.stdout.write(`${line}\n`))

const program = Effect.gen(function* () {
  const arena = yield* openArena(yield* database)
  const first = Number(flags.seed ?? flags.from)
  const count = flags.seed === undefined ? Number(flags.seeds) : 1
  let requests = 0
  const tally = expectedTally()
  for (let seed = first; seed < first + count; seed++) {
    const result = yield* simulate(arena, { seed, steps: Number(flags.steps), overlap: Number(flags.overlap) })
    requests += result.requests
    tally.add(result.tally)
    if (result.failure !== undefined) {
      yield* say(result.failure)
      yield* say(`found after ${seed - first + 1} seeds and ${requests} requests`)
      return yield* Effect.sync(() => {
        process.exitCode = 1
      })
    }
    if (flags.story) yield* say(result.story())
    if (flags.verbose) yield* say(`seed ${seed}: ${result.requests} requests, ${result.digest}`)
  }
  for (const line of tally.lines) yield* say(line)
  if (tally.missing.length > 0) yield* say(`Never happened: ${tally.missing.join(", ")}`)
  yield* say(`${count} seeds, ${requests} requests: nothing found.`)
}).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer), Effect.provideService(References.MinimumLogLevel, "Warn"))

NodeRuntime.runMain(program)
