/**
 * Sends a service's listener requests that a seed has mutated: cut, duplicated, with flipped bits, wrong lengths, wrong chunks, floods of
 * headers, several on one connection, bodies that are no JSON. Each response must be a valid one or the error envelope.
 *
 *   npm run fuzz:bytes -- [--requests 100000] [--seed 1] [--from 0]
 *
 * Exits with 1 if a response is wrong, a connection hangs, the process ends or logs an error, or its main thread is busy for more than
 * 100 ms without a pause. --from begins at a later connection.
 */
import { randomBytes } from "node:crypto"
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { startService } from "../../../infra/scripts/service.ts"
import { numberFlag } from "../../support/processes/Flags.ts"
import { type Findings, fuzzBytes } from "./Fuzzer.ts"
import { makeTemplates } from "./Records.ts"

const flags = {
  requests: numberFlag("requests", 100_000, "How many requests to send."),
  seed: numberFlag("seed", 1, "The seed."),
  from: numberFlag("from", 0, "The first connection.")
}

const busyMillisMax = 100

const running = Effect.acquireRelease(
  Effect.promise(async () => {
    const folder = mkdtempSync(join(tmpdir(), "licensing-bytes-"))
    // PostgreSQL does not run as root: its own user needs access to the folder.
    chmodSync(folder, 0o711)
    const token = `bytes_${randomBytes(32).toString("base64url")}`
    const [log, longest] = [join(folder, "service.log"), join(folder, "longest")]
    const unlimited = ["RUNTIME", "ACTIVATION", "MANAGEMENT", "FAILURES"].map((name) => [`LICENSING_RATE_${name}`, "0"])
    const settings = {
      LICENSING_DATA_DIR: join(folder, "data"),
      LICENSING_BOOTSTRAP_TOKEN: token,
      LICENSING_LOG_FORMAT: "json",
      LICENSING_LOG_LEVEL: "warn",
      ...Object.fromEntries(unlimited),
      // On a busy machine, too, requests are in time.
      LICENSING_REQUEST_TIMEOUT_SECONDS: "50",
      NODE_OPTIONS: `--import=${fileURLToPath(new URL("LongestTask.ts", import.meta.url))}`,
      LONGEST_TASK_FILE: longest
    }
    return { ...(await startService({ settings, log })), folder, token, log, longest }
  }),
  ({ folder, stop }) => Effect.promise(() => stop().then(() => rmSync(folder, { recursive: true, force: true })))
)

const sorted = (counts: ReadonlyMap<string | number, number>) =>
  [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .map(([name, count]) => `${name}: ${count.toLocaleString("en")}`)
    .join(", ")

const report = Effect.fnUntraced(function* (
  { mutations, requests, statuses, violations }: Findings,
  others: ReadonlyArray<string>
) {
  yield* Console.log(`${requests.toLocaleString("en")} requests. Mutations: ${sorted(mutations)}.`)
  yield* Console.log(`Responses by status, 0 where a connection was closed without one: ${sorted(statuses)}.`)
  for (const { connection, sent, what } of violations)
    yield* Console.log(
      `Connection ${connection}: ${what}\n  sent: ${JSON.stringify(sent.toString("latin1").slice(0, 2_000))}`
    )
  for (const other of others) yield* Console.log(other)
  if (violations.length + others.length > 0) yield* Effect.sync(() => (process.exitCode = 1))
})

const run = Effect.fnUntraced(function* ({ from, requests, seed }: Command.Command.Config.Infer<typeof flags>) {
  const { base, log, longest, pid, token } = yield* running
  const templates = yield* Effect.promise(() => makeTemplates(base, token))
  yield* Effect.sync(() => process.kill(pid, "SIGUSR2"))
  const told = ({ requests: sent }: Findings) => Console.error(`${sent.toLocaleString("en")} requests`)
  const findings = yield* fuzzBytes({ port: Number(new URL(base).port), templates, seed, requests, from, told })
  const isReady = yield* Effect.promise(() =>
    fetch(`${base}/readyz`).then(
      ({ status }) => status === 200,
      () => false
    )
  )
  const busyMillis = existsSync(longest) ? Number(readFileSync(longest, "utf8")) : Number.NaN
  const errors = readFileSync(log, "utf8")
    .split("\n")
    .filter((line) => /"level":"(error|fatal)"/i.test(line))
  yield* Console.log(`The main thread was busy for at most ${Math.round(busyMillis)} ms without a pause.`)
  yield* report(findings, [
    ...(isReady ? [] : ["The service is not ready afterwards."]),
    ...(busyMillis <= busyMillisMax ? [] : [`The main thread was busy for ${busyMillis} ms.`]),
    ...errors.slice(0, 20)
  ])
}, Effect.scoped)

Command.make("fuzz:bytes", flags, run).pipe(
  Command.withDescription("Send mutated requests to the listener, and check the responses."),
  Command.run({ version: "1" }),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
