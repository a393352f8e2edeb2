/**
 * The statements that a request really runs, and how PostgreSQL runs them: which rows it looks at, and whether it found them by an
 * index.
 */
import { Effect, Layer } from "effect"
import { SqlClient, Statement } from "effect/sql"

export interface Captured {
  readonly text: string
  readonly parameters: ReadonlyArray<unknown>
}

let captured: Array<Captured> | undefined

/** Given to a service, it notes every statement that is run while `capture` runs. */
export const layerCapturing = Layer.succeed(Statement.CurrentTransformer, (statement) =>
  Effect.sync(() => {
    if (captured !== undefined) {
      const [text, parameters] = statement.compile()
      // Whoever asks is looked up by the token's digest, however long the list.
      if (!text.includes("token_hash")) captured.push({ text, parameters })
    }
    return statement
  })
)

/** What an effect answers, and the statements that were run meanwhile. */
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

/** How a statement is planned: with the session's own settings, or as if scans of whole tables cost what they cost. */
export interface Planning {
  readonly name: string
  readonly settings: ReadonlyArray<string>
}

const open = ["enable_seqscan = on", "enable_hashjoin = on", "enable_mergejoin = on"]

/** A cached plan is either made for its parameters or for any: which of them, PostgreSQL decides by itself. */
export const plannings: ReadonlyArray<Planning> = [
  { name: "as the service, for these values", settings: ["plan_cache_mode = force_custom_plan"] },
  { name: "as the service, for any values", settings: ["plan_cache_mode = force_generic_plan"] },
  { name: "with everything allowed, for these values", settings: [...open, "plan_cache_mode = force_custom_plan"] },
  { name: "with everything allowed, for any values", settings: [...open, "plan_cache_mode = force_generic_plan"] }
]

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
  /** Rows that were read, returned or not. */
  readonly rows: number
}

let prepared = 0

/** Runs a statement and tells which rows it read from where. */
export const scansOf = Effect.fnUntraced(function* ({ text, parameters }: Captured, { settings }: Planning) {
  const sql = yield* SqlClient.SqlClient
  const run = (statement: string) => sql.unsafe<{ readonly "QUERY PLAN": unknown }>(statement).unprepared
  const name = `listed_${++prepared}`
  const values = parameters.length === 0 ? "" : `(${parameters.map(literal).join(", ")})`
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      for (const setting of settings) yield* run(`SET LOCAL ${setting}`)
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

/** A bound value as it is written in SQL. Instants are bound as milliseconds. */
const literal = (parameter: unknown): string => {
  if (parameter === null || parameter === undefined) return "NULL"
  if (typeof parameter === "object" && "value" in parameter) {
    const { value } = parameter as { readonly value: unknown }
    return typeof value === "number" && value > 1e11 ? literal(new Date(value).toISOString()) : literal(value)
  }
  if (typeof parameter === "number" || typeof parameter === "boolean") return String(parameter)
  return `'${String(parameter).replaceAll("'", "''")}'`
}
