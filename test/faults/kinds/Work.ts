/** Long work whose node is killed in the middle: it is carried on, each part once. */
import { Effect } from "effect"
import { pauseFor } from "../../../src/platform/postgres/driver/Transactions.ts"
import { poll } from "../../support/rules/Poll.ts"
import { query } from "../checks/Rows.ts"
import type { Installation } from "../installation/Installation.ts"
import type { Fault, Struck } from "./Fault.ts"

const licensesOfJob = 400

interface Created {
  readonly id: string
}

/** Licenses beside those that the clients use. */
const sellBeside = ({ catalog: { policyId, productId }, installation: { manage }, round }: Struck, owner: object) => {
  const one = { product_id: productId, policy_id: policyId, ...owner }
  return Effect.map(
    manage<{ licenses: ReadonlyArray<{ license: Created }> }>(
      "POST",
      "/licenses/batch",
      { licenses: Array.from({ length: licensesOfJob }, () => one) },
      `beside-${round}`
    ),
    ({ licenses }) => licenses.map(({ license }) => license.id)
  )
}

/** Kills every node once, one after the other, while the work goes on. */
const killDuring = ({ installation: { nodes }, random }: Struck) =>
  Effect.forEach(nodes, (node) =>
    Effect.gen(function* () {
      yield* pauseFor(random.between(20, 400))
      yield* node.signal("SIGKILL")
      yield* node.ended
      yield* node.start()
    })
  )

const killedBulkJob: Fault = {
  name: "kill the nodes during a bulk job",
  lasts: [0, 0],
  begin: Effect.fnUntraced(function* (struck) {
    const { manage, postgres } = struck.installation
    const license_ids = yield* sellBeside(struck, {})
    const body = { action: "suspend", license_ids, reason: "faults" }
    const { id } = yield* manage<Created>("POST", "/bulk-jobs", body, `job-${struck.round}`)
    yield* killDuring(struck)
    const job = manage<{ readonly status: string; readonly changed: number }>("GET", `/bulk-jobs/${id}`)
    return Effect.gen(function* () {
      const { changed, status } = yield* poll(job, ({ status }) => status !== "pending" && status !== "running")
      const sql = `SELECT jsonb_build_array(count(*), count(DISTINCT resource_id))::text FROM events
        WHERE event_type = 'license.suspended' AND metadata ->> 'bulk_job_id' = $1`
      const [events, licenses] = (yield* query(postgres, sql, [id])) as [number, number]
      const isRight = [changed, events, licenses].every((count) => count === licensesOfJob) && status === "completed"
      const told = `${status}, changed ${changed} of ${licensesOfJob} licenses; ${events} events of ${licenses} licenses`
      return isRight ? [] : [`the bulk job is ${told}`]
    })
  })
}

/** The tables with a row that contains one of the texts, also as a part of bytes. */
const tablesWith = Effect.fnUntraced(function* ({ postgres }: Installation, texts: ReadonlyArray<string>) {
  const names = (yield* query(
    postgres,
    "SELECT coalesce(jsonb_agg(relname), '[]')::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
    []
  )) as ReadonlyArray<string>
  const patterns = texts.flatMap((text) => [`%${text}%`, `%${Buffer.from(text).toString("hex")}%`])
  return yield* Effect.filter(names, (name) =>
    Effect.map(
      query(postgres, `SELECT EXISTS (SELECT FROM "${name}" t WHERE t::text ILIKE ANY($1))::text`, [patterns]),
      (found) => found === true
    )
  )
})

const killedErasure: Fault = {
  name: "kill the nodes during an erasure",
  lasts: [0, 0],
  begin: Effect.fnUntraced(function* (struck) {
    const { installation, round } = struck
    const { manage } = installation
    const texts = [`Zdenka Quist of ${round}`, `zdenka-${round}@mailbox-of-quist.example`]
    const [name, email] = texts
    const customer = yield* manage<Created>("POST", "/customers", { name, email, code: `buyer-${round}` })
    yield* sellBeside(struck, { customer_id: customer.id, customer_name: name, customer_email: email })
    const before = yield* tablesWith(installation, texts)
    const erase = manage<{ readonly status: string }>("POST", `/customers/${customer.id}/erase`)
    yield* erase
    yield* killDuring(struck)
    return Effect.gen(function* () {
      yield* poll(erase, ({ status }) => status === "erased")
      const left = yield* tablesWith(installation, texts)
      return [
        ...(before.length === 0 ? ["the person was nowhere before the erasure"] : []),
        ...left.map((table) => `${table} names the erased person`)
      ]
    })
  })
}

const keyOf = (byte: number) => Buffer.alloc(32, byte).toString("base64")

/** All four steps of docs/SECURITY.md. The command is killed once, and repeated. */
const rotatedMasterKey: Fault = {
  name: "rotate the master key",
  lasts: [0, 500],
  begin: ({ installation, random }) => {
    const { nodes } = installation
    const nextKey = keyOf(random.between(10, 250))
    const restartAll = (settings: Readonly<Record<string, string>>) =>
      Effect.forEach(nodes, (node) =>
        Effect.gen(function* () {
          yield* node.configure(settings)
          yield* node.signal("SIGTERM")
          yield* node.ended
          yield* node.start()
          yield* node.untilReady
        })
      )
    const [first] = nodes
    const rotate = first!.command(["master-key", "rotate"])
    return Effect.gen(function* () {
      yield* restartAll({ LICENSING_MASTER_KEY_NEXT: nextKey })
      yield* rotate.pipe(Effect.timeoutOption(random.between(500, 3_000)))
      return Effect.gen(function* () {
        const code = yield* rotate
        if (code !== 0) return [`master-key rotate ended with ${code}`]
        yield* restartAll({ LICENSING_MASTER_KEY: nextKey, LICENSING_MASTER_KEY_NEXT: "" })
        return []
      })
    })
  }
}

export const workFaults: ReadonlyArray<Fault> = [killedBulkJob, killedErasure, rotatedMasterKey]
