/**
 * Records histories of single licenses: three nodes under faults, machines that use each license at the same time, and its
 * vendor. Then Porcupine, in Go, looks for an order of the calls in which the rules give each answer.
 *
 *   npm run histories -- [--seed 1] [--rounds 1] [--licenses 20] [--nodes 3]
 *
 * Exits with 1 if a history has no such order; a drawing of it is kept.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, References } from "effect"
import { Command } from "effect/cli"
import { numberFlag } from "../../support/processes/Flags.ts"
import { makeInstallation } from "../installation/Installation.ts"
import { makeCatalog } from "./Licenses.ts"
import type { Line } from "./Line.ts"
import { recordRound } from "./Rounds.ts"

const flags = {
  seed: numberFlag("seed", 1, "The seed of the first round."),
  rounds: numberFlag("rounds", 1, "How many rounds to run, each with a fault."),
  licenses: numberFlag("licenses", 20, "The licenses of a round."),
  nodes: numberFlag("nodes", 3, "How many nodes: 1 or 3.")
}

const folder = mkdtempSync(join(tmpdir(), "histories-"))

const run = Effect.fnUntraced(
  function* ({ licenses, nodes, rounds, seed }: Command.Command.Config.Infer<typeof flags>) {
    const installation = yield* makeInstallation(nodes)
    const catalog = yield* makeCatalog(installation)
    const lines: Array<Line> = []
    for (let round = 0; round < rounds; round++)
      lines.push(...(yield* recordRound(installation, catalog, seed + round, licenses)))
    yield* Effect.sync(() => check(lines))
  },
  Effect.scoped,
  Effect.provideService(References.MinimumLogLevel, "Warn")
)

const check = (lines: ReadonlyArray<Line>) => {
  const path = join(folder, "histories.jsonl")
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
  const cwd = fileURLToPath(new URL("checker", import.meta.url))
  const { status } = spawnSync("go", ["run", ".", path, folder], { cwd, stdio: "inherit" })
  if (status !== 0) {
    process.exitCode = 1
    process.stderr.write(`The histories and drawings are in ${folder}.\n`)
  }
}

Command.make("histories", flags, run).pipe(
  Command.withDescription("Record histories of licenses under faults and check that they are linearizable."),
  Command.run({ version: "1" }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
