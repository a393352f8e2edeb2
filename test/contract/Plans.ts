/**
 * The statements that a request really runs, and how PostgreSQL runs them: which rows it looks at, and whether it found them by an
 * index.
 */
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Session } from "../../src/postgres/Session.ts"

export interface Captured {
  readonly text: string
  readonly parameters: ReadonlyArray<unknown>
  /** Kept by the connection and run again for other values, so its plan may be one for any values. */
  readonly prepared: boolean
}

let captured: Array<Captured> | undefined

const note = (prepared: boolean, run: (text: string, parameters: ReadonlyArray<unknown>) => never) =>
  // Called as the method of a session.
  function (this: Session, text: string, parameters: ReadonlyArray<unknown>) {
    // Whoever asks is looked up by the token's digest, however long the list.
    if (!/FROM api_keys[\s\S]*token_hash/.test(text)) captured?.push({ text, parameters, prepared })
    return run.call(this, text, parameters)
  }

/** While it is built, every statement of this process can be captured, by whichever connection it is run. */
export const layerCapturing = Layer.effectDiscard(
  Effect.acquireRelease(
    Effect.sync(() => {
      const own = Session.prototype
      const { execute, executeUnprepared, executeValues, executeValuesUnprepared } = own
      const original = { execute, executeUnprepared, executeValues, executeValuesUnprepared }
      Object.assign(own, {
        execute: note(true, execute as never),
        executeUnprepared: note(false, executeUnprepared as never),
        executeValues: note(true, executeValues as never),
        executeValuesUnprepared: note(false, executeValuesUnprepared as never)
      })
      return original
    }),
    (original) => Effect.sync(() => void Object.assign(Session.prototype, original))
  )
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
  return { answer, statements: statements.filter(({ text }) => /^\s*\(?\s*(SELECT|WITH)\b/i.test(text)) }
})

/** How a statement is planned: with the session's own settings, or as if scans of whole tables cost what they cost. */
export interface Planning {
  readonly name: string
  readonly settings: ReadonlyArray<string>
}

const allowed = ["enable_seqscan = on", "enable_hashjoin = on", "enable_mergejoin = on"]

const planning = (any: boolean) =>
  ({
    custom: { name: "for these values", settings: ["plan_cache_mode = force_custom_plan"] },
    generic: { name: "for any values", settings: ["plan_cache_mode = force_generic_plan"] }
  })[any ? "generic" : "custom"]

/** A kept plan is either made for its values or for any: which of them, PostgreSQL decides by itself. */
export const planningsOf = ({ prepared }: Captured): ReadonlyArray<Planning> =>
  (prepared ? [false, true] : [false]).map(planning).flatMap(({ name, settings }) => [
    { name: `as the service, ${name},`, settings },
    { name: `with everything allowed, ${name},`, settings: [...settings, ...allowed] }
  ])

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
