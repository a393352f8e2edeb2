/** Processes that are killed, frozen and restarted. */
import { Effect } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"
import type { ServiceNode } from "../installation/ServiceNode.ts"
import { type Fault, nothingWrong } from "./Fault.ts"

/** Shorter and longer than the service's locks, leases and deadlines. */
const [short, long] = [
  [200, 900],
  [3_000, 7_000]
] as const

const restart = (node: ServiceNode, signal: NodeJS.Signals) =>
  Effect.gen(function* () {
    yield* node.signal(signal)
    yield* node.ended
    yield* node.start()
    yield* node.untilReady
  })

const killNode: Fault = {
  name: "kill a node",
  lasts: [0, 1_500],
  begin: ({ installation: { nodes }, random }) => {
    const node = random.pick(nodes)
    const end = Effect.as(Effect.andThen(node.ended, node.start()), nothingWrong)
    return Effect.as(node.signal("SIGKILL"), end)
  }
}

const killAllNodes: Fault = {
  name: "kill all nodes",
  nodesMin: 2,
  lasts: [0, 500],
  begin: ({ installation: { nodes } }) =>
    Effect.as(
      Effect.forEach(nodes, (node) => node.signal("SIGKILL")),
      Effect.as(
        Effect.forEach(nodes, (node) => Effect.andThen(node.ended, node.start())),
        nothingWrong
      )
    )
}

const freezeNode = (name: string, lasts: Fault["lasts"]): Fault => ({
  name,
  lasts,
  begin: ({ installation: { nodes }, random }) => {
    const node = random.pick(nodes)
    return Effect.as(node.signal("SIGSTOP"), Effect.as(node.signal("SIGCONT"), nothingWrong))
  }
})

const restartNodes: Fault = {
  name: "restart nodes in turn",
  lasts: [0, 0],
  begin: ({ installation: { nodes } }) =>
    Effect.as(
      Effect.forEach(nodes, (node) => restart(node, "SIGTERM")),
      Effect.succeed(nothingWrong)
    )
}

/** Until the last one, both versions serve. The first of the next version changes the database's schema. */
export const upgradedNodes: Fault = {
  name: "replace the nodes by those of the next version in turn",
  lasts: [0, 0],
  begin: ({ installation: { nodes }, random }) =>
    Effect.as(
      Effect.forEach(nodes, (node) =>
        Effect.gen(function* () {
          yield* pauseFor(random.between(...short))
          yield* node.upgrade
          yield* restart(node, random.pick(["SIGTERM", "SIGKILL"]))
        })
      ),
      Effect.succeed(nothingWrong)
    )
}

const killPostgres = (name: string, whom: "server" | "all"): Fault => ({
  name,
  lasts: [0, 2_000],
  begin: ({ installation: { postgres } }) =>
    Effect.as(postgres.signal("SIGKILL", whom), Effect.as(postgres.start, nothingWrong))
})

const killConnection: Fault = {
  name: "kill a process of PostgreSQL",
  lasts: [0, 1_000],
  begin: ({ installation: { postgres } }) =>
    Effect.as(postgres.signal("SIGKILL", "one connection"), Effect.as(postgres.start, nothingWrong))
}

const freezePostgres = (name: string, lasts: Fault["lasts"]): Fault => ({
  name,
  lasts,
  begin: ({ installation: { postgres } }) =>
    Effect.as(postgres.signal("SIGSTOP", "all"), Effect.as(postgres.signal("SIGCONT", "all"), nothingWrong))
})

/** Within the clocks' allowed difference of 30 seconds. The step back is the end of the fault. */
const stepSecondsMax = 25

const stepClock: Fault = {
  name: "a node's clock steps",
  lasts: [1_000, 2_000],
  begin: ({ installation: { nodes }, random }) => {
    const node = random.pick(nodes)
    const seconds = random.between(1, stepSecondsMax)
    const restartAt = (offset: number) =>
      Effect.gen(function* () {
        yield* node.signal("SIGKILL")
        yield* node.ended
        yield* node.start({ LICENSING_CLOCK_OFFSET_SECONDS: String(offset) })
        yield* node.untilReady
      })
    return Effect.as(restartAt(seconds), Effect.as(restartAt(0), nothingWrong))
  }
}

/** A node is killed while its start is under way, several times. */
const killStartingNode: Fault = {
  name: "kill a node while it starts",
  lasts: [0, 500],
  begin: ({ installation: { nodes }, random }) => {
    const node = random.pick(nodes)
    const kill = Effect.gen(function* () {
      yield* node.signal("SIGKILL")
      yield* node.ended
      yield* node.start()
      yield* pauseFor(random.between(50, 1_500))
    })
    return Effect.as(Effect.replicateEffect(kill, 3), Effect.as(node.start(), nothingWrong))
  }
}

export const processFaults: ReadonlyArray<Fault> = [
  killNode,
  killAllNodes,
  killStartingNode,
  freezeNode("freeze a node, short", short),
  freezeNode("freeze a node, long", long),
  restartNodes,
  killPostgres("kill PostgreSQL's server", "server"),
  killPostgres("kill all of PostgreSQL", "all"),
  killConnection,
  freezePostgres("freeze PostgreSQL, short", short),
  freezePostgres("freeze PostgreSQL, long", long),
  stepClock
]
