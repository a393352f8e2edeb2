/**
 * The statements that a request runs, and their plans: the rows that PostgreSQL reads, and whether it finds them by an
 * index.
 */
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Session } from "../../../src/platform/postgres/driver/Session.ts"

type Settings = { readonly [name: string]: string }

/** The types of plans that a connection may forbid. */
const choices = ["enable_seqscan", "enable_hashjoin", "enable_mergejoin"]
const readSettings = `SELECT ${["plan_cache_mode", ...choices].map((name) => `current_setting('${name}') AS ${name}`).join(", ")}`

export interface Captured {
  readonly text: string
  readonly parameters: ReadonlyArray<unknown>
  /** The settings of the connection that ran it. */
  readonly settings: Settings
}

let captured: Array<Captured> | undefined

/** Authentication looks up the token's digest; its cost does not depend on the list. */
const isCaptured = (text: string): boolean =>
  /^\s*\(?\s*(SELECT|WITH)\b/i.test(text) && !/FROM api_keys[\s\S]*token_hash/.test(text)

const execute = Session.prototype.execute

const noting = (run: (text: string, parameters: ReadonlyArray<unknown>) => never) =>
  // Called as a method of a session.
  function (this: Session, text: string, parameters: ReadonlyArray<unknown>) {
    const statements = captured
    if (statements === undefined || !isCaptured(text)) return run.call(this, text, parameters)
    // A transaction's session cannot be asked after the transaction, so its settings are read with the statement.
    return Effect.flatMap(execute.call(this, readSettings, []), ([settings]) => {
      statements.push({ text, parameters, settings: settings as unknown as Settings })
      return run.call(this, text, parameters) as Effect.Effect<unknown>
    })
  }

/** While the layer exists, the statements of all connections of this process can be captured. */
export const layerCapturing = Layer.effectDiscard(
  Effect.acquireRelease(
    Effect.sync(() => {
      const own = Session.prototype
      const { execute, executeUnprepared, executeValues, executeValuesUnprepared } = own
      const original = { execute, executeUnprepared, executeValues, executeValuesUnprepared }
      Object.assign(own, {
        execute: noting(execute as never),
        executeUnprepared: noting(executeUnprepared as never),
        executeValues: noting(executeValues as never),
        executeValuesUnprepared: noting(executeValuesUnprepared as never)
      })
      return original
    }),
    (original) => Effect.sync(() => void Object.assign(Session.prototype, original))
  )
)

/** The result of an effect, and the statements that ran meanwhile. */
export const capture = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const statements: Array<Captured> = []
  captured = statements
  const answer = yield* Effect.ensuring(
    effect,
    Effect.sync(() => {
      captured = undefined
    })
  )
  return { answer, statements }
})

/** How a statement is planned. */
export interface Planning {
  readonly name: string
  readonly settings: Settings
}

/**
 * The plans that a statement can get: with the settings of its connection, and with all plan types enabled, which shows
 * that indexes are chosen by cost. Plans are custom or generic; where the server chooses, both.
 */
export const planningsOf = ({ settings }: Captured): ReadonlyArray<Planning> => {
  const mode = settings["plan_cache_mode"]!
  const modes = mode === "auto" ? ["force_custom_plan", "force_generic_plan"] : [mode]
  return modes.flatMap((mode): ReadonlyArray<Planning> => {
    const name = mode === "force_custom_plan" ? "for these values" : "for any values"
    const everything = Object.fromEntries(choices.map((choice) => [choice, "on"]))
    return [
      { name: `as the service, ${name},`, settings: { ...settings, plan_cache_mode: mode } },
      { name: `with everything allowed, ${name},`, settings: { ...everything, plan_cache_mode: mode } }
    ]
  })
}

interface Node {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Index Name"?: string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly "Rows Removed by Index Recheck"?: number
  readonly Plans?: ReadonlyArray<Node>
}

export interface Scan {
  readonly type: string
  readonly table: string
  readonly index: string | undefined
  /** Rows that were read, whether returned or not. */
  readonly rows: number
}

let prepared = 0

/** Runs a statement and returns its scans. */
export const scansOf = Effect.fnUntraced(function* ({ text, parameters }: Captured, { settings }: Planning) {
  const sql = yield* SqlClient.SqlClient
  const run = (statement: string) => sql.unsafe<{ readonly "QUERY PLAN": unknown }>(statement).unprepared
  const name = `listed_${++prepared}`
  const values = parameters.length === 0 ? "" : `(${parameters.map(literal).join(", ")})`
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      // On a busy machine this process may take longer between two statements than the service ever does.
      const own = { ...settings, idle_in_transaction_session_timeout: "0" }
      yield* run(
        `SELECT ${Object.entries(own).map(([setting, value]) => `set_config('${setting}', '${value}', true)`)}`
      )
      yield* run(`PREPARE ${name} AS ${text}`)
      const [row] = yield* run(`EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE ${name}${values}`)
      yield* run(`DEALLOCATE ${name}`)
      const plan = row!["QUERY PLAN"]
      const [explained] = (typeof plan === "string" ? JSON.parse(plan) : plan) as [{ readonly Plan: Node }]
      return scansIn(explained.Plan)
    })
  )
})

const scansIn = (node: Node): ReadonlyArray<Scan> => {
  const inner = (node.Plans ?? []).flatMap(scansIn)
  const table = node["Relation Name"]
  if (table === undefined) return inner
  const removed = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0)
  const rows = Math.round((node["Actual Rows"] + removed) * node["Actual Loops"])
  return [{ type: node["Node Type"], table, index: node["Index Name"], rows }, ...inner]
}

const isInstant = (value: unknown): value is number => typeof value === "number" && value > 1e11
const instantText = (value: number) => new Date(value).toISOString()

/** A bound value as an SQL literal. Instants are bound as milliseconds. */
const literal = (parameter: unknown): string => {
  if (parameter === null || parameter === undefined) return "NULL"
  if (typeof parameter === "object" && "value" in parameter) {
    const { value } = parameter as { readonly value: unknown }
    if (Array.isArray(value) && value.length === 0) return "'{}'"
    if (Array.isArray(value) && value.every(isInstant)) return literal(`{${value.map(instantText).join(",")}}`)
    if (Array.isArray(value)) return `ARRAY[${value.map(literal).join(", ")}]`
    if (value instanceof Uint8Array) return literal(`\\x${Buffer.from(value).toString("hex")}`)
    if (typeof value === "object" && value !== null) return literal(JSON.stringify(value))
    return isInstant(value) ? literal(instantText(value)) : literal(value)
  }
  if (typeof parameter === "number" || typeof parameter === "boolean") return String(parameter)
  return `'${String(parameter).replaceAll("'", "''")}'`
}
