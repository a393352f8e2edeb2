/**
 * Measures how fast queued mails leave, and what that costs other requests. The mails of new license keys wait while the mail
 * server refuses connections; then it takes them. Service, database, mail server and load share the machine.
 *
 *   npm run bench:mail -- [--mails 10000] [--rate 400] [--seconds 15] [--assert]
 *
 * --rate is runtime requests a second, half validations, half consumptions; --seconds is how long they run before the mails leave, and
 * again afterwards.
 * --assert exits with 1 if a target is missed.
 */
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { join } from "node:path"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Redacted } from "effect"
import { root, startService } from "../../infra/scripts/service.ts"
import { type Management, makeSeats, managementOf } from "./load/Licenses.ts"
import { cpuSeconds, cpuSecondsOfFamily, peakMegabytes } from "./load/Processes.ts"
import { table } from "./load/Report.ts"
import { folder, startPostgres } from "./load/Sides.ts"
import { comparisonOf, steadily, together } from "./load/Steady.ts"
import type { MailOrder, MailReply } from "./peers/receiveMail.ts"

const { values: flags } = parseArgs({
  options: {
    mails: { type: "string", default: "10000" },
    rate: { type: "string", default: "400" },
    seconds: { type: "string", default: "15" },
    assert: { type: "boolean", default: false }
  }
})

const targets = { seconds: 60, slowdown: 1.2 }
const mails = Number(flags.mails)
const batchMax = 1_000

const startMailServer = Effect.acquireRelease(
  Effect.sync(() => {
    const child = spawn(process.execPath, ["test/bench/peers/receiveMail.ts"], {
      cwd: root,
      stdio: ["ignore", "ignore", "inherit", "ipc"]
    })
    const order = async <D extends MailReply["did"]>(order: MailOrder, did: D) => {
      child.send(order)
      const [reply] = (await once(child, "message")) as [MailReply]
      if (reply.did !== did) throw new Error(`the mail server answered ${reply.did}, not ${did}`)
      return reply as Extract<MailReply, { did: D }>
    }
    return { child, order }
  }),
  ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
)

/** Licenses whose keys are to be mailed, each to an address of its own. */
const queueMails = async ({ call }: Management) => {
  const product = await call<{ readonly id: string }>("/products", { name: "Mailed", code: "mailed" })
  const rules = { name: "Mailed", code: "mailed", license_type: "perpetual" }
  const policy = await call<{ readonly id: string }>(`/products/${product.id}/policies`, rules)
  for (let from = 0; from < mails; from += batchMax) {
    const licenses = Array.from({ length: Math.min(batchMax, mails - from) }, (_, index) => ({
      ...{ product_id: product.id, policy_id: policy.id, send_key: true },
      customer_email: `buyer-${from + index}@example.com`,
      customer_name: "Müller & Söhne"
    }))
    await call("/licenses/batch", { licenses })
  }
}

const program = Effect.gen(function* () {
  const directory = yield* folder
  const postgres = yield* startPostgres(directory)
  const { child, order } = yield* startMailServer
  const { port } = yield* Effect.promise(() => order({ do: "listen" }, "listening"))
  const token = `bench_${randomBytes(32).toString("base64url")}`
  const service = yield* Effect.acquireRelease(
    Effect.promise(() =>
      startService({
        log: join(directory, "service.log"),
        settings: {
          LICENSING_DATABASE_URL: Redacted.value(postgres.url),
          LICENSING_MASTER_KEY: randomBytes(32).toString("base64"),
          LICENSING_BOOTSTRAP_TOKEN: token,
          LICENSING_LOG_LEVEL: "warning",
          LICENSING_SMTP_URL: `smtp://127.0.0.1:${port}`,
          LICENSING_MAIL_FROM: "Example <licenses@example.com>",
          LICENSING_RATE_MANAGEMENT: "0",
          LICENSING_RATE_RUNTIME: "0",
          LICENSING_RATE_ACTIVATION: "0"
        }
      })
    ),
    (running) => Effect.promise(() => running.stop())
  )
  const used = () => ({
    service: cpuSeconds(service.pid),
    postgres: cpuSecondsOfFamily(postgres.pid),
    mail_server: cpuSeconds(child.pid ?? 0)
  })
  const rows = yield* Effect.promise(async () => {
    const management = await managementOf(service.base, token)
    const seats = await makeSeats(management, "mail", 200)
    const rate = Number(flags.rate)
    await queueMails(management)
    const during = (seconds: number) => {
      const until = performance.now() + seconds * 1_000
      return steadily(management, seats, rate, () => performance.now() >= until)
    }
    await during(3)
    const before = await during(Number(flags.seconds))
    await order({ do: "open" }, "opened")
    const began = used()
    let isOver = false
    const loading = steadily(management, seats, rate, () => isOver)
    const { did: _, ...received } = await order({ do: "await", recipients: mails, secondsMax: 300 }, "received")
    const ended = used()
    isOver = true
    const load = await loading
    const cpu = (name: keyof typeof began) => Number((ended[name] - began[name]).toFixed(2))
    const sent = {
      ...received,
      per_second: Math.round(received.mails / received.seconds),
      cpu_service: cpu("service"),
      cpu_postgres: cpu("postgres"),
      cpu_mail_server: cpu("mail_server"),
      service_peak_megabytes: peakMegabytes(service.pid)
    }
    const beside = together(before, await during(Number(flags.seconds)))
    return { sent, load: comparisonOf(beside, load, targets.slowdown), failed: beside.failed + load.failed }
  })
  const { failed, load, sent } = rows
  const checks = [
    {
      target: `${mails} mails leave in ${targets.seconds} s`,
      found: sent.seconds,
      holds: sent.recipients === mails && sent.seconds <= targets.seconds
    },
    { target: "no mail is sent twice", found: sent.mails - sent.recipients, holds: sent.mails === sent.recipients },
    {
      target: `the median of other requests is at most ${targets.slowdown} times as long`,
      found: Math.max(...load.map(({ p50_ratio }) => p50_ratio)),
      holds: failed === 0 && load.every(({ p50_ratio }) => p50_ratio <= targets.slowdown)
    }
  ]
  yield* Effect.sync(() => process.stdout.write(`${[[sent], load, checks].map(table).join("\n\n")}\n`))
  if (flags.assert && checks.some(({ holds }) => !holds)) {
    yield* Effect.sync(() => {
      process.exitCode = 1
    })
  }
})

NodeRuntime.runMain(Effect.scoped(program))
