/** What can go wrong between a node and the database, and what comes of it. */
import { SqlError } from "effect/sql"

/** Statements outside transactions and the two ends of transactions. */
type Point = "read" | "begin" | "commit"

/** What happens to one that is let through. */
export type Verdict =
  | "pass"
  /** The connection is lost before anything was sent: nothing is done. */
  | "lost"
  /** The server refuses, and rolls back. */
  | "serialization"
  | "deadlock"
  | "refused"
  /** The server ends the connection just before it reads COMMIT. */
  | "cut"
  /** Committed, and the connection lost before that is acknowledged. */
  | "unacknowledged"
  /** The connection is lost while the server is still at it: it decides later. */
  | "undecided"

export interface Visit {
  readonly node: string
  readonly point: Point
  /** Whose it is: journal, load, look-up … */
  readonly what: string
  /** Nobody waits for it any more. */
  readonly isAlone?: boolean
}

/** As the driver tells of it. */
export const failure = (verdict: Verdict): SqlError.SqlError => {
  const why = {
    cause: new Error(`the simulator: ${verdict}`),
    message: `the simulator: ${verdict}`,
    operation: "execute"
  }
  if (verdict === "serialization") return new SqlError.SqlError({ reason: new SqlError.SerializationError(why) })
  if (verdict === "deadlock") return new SqlError.SqlError({ reason: new SqlError.DeadlockError(why) })
  if (verdict === "refused") return new SqlError.SqlError({ reason: new SqlError.UnknownError(why) })
  return new SqlError.SqlError({ reason: new SqlError.ConnectionError(why) })
}

/** Faults of the gate, as a person reads them. */
export const faultNames: { readonly [verdict in Exclude<Verdict, "pass">]: string } = {
  lost: "connection lost before anything was done",
  serialization: "serialization failure",
  deadlock: "deadlock",
  refused: "database refuses",
  cut: "connection ended before COMMIT",
  unacknowledged: "committed, answer lost",
  undecided: "connection lost, decided later"
}
