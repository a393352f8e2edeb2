/** What can go wrong between a node and the database, and what comes of it. */
import { SqlError } from "effect/sql"

/** Where a transaction that has begun passes again: where it locks a license first and then decides, three times. */
export type TransactionPoint = "locked" | "decided" | "commit"

/** Statements outside transactions, the beginning of transactions, and points within them. */
type Point = "read" | "begin" | TransactionPoint

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
  /** The connection is lost while the server is still at it: it decides later, and rolls back what had more to come. */
  | "undecided"

export interface Checkpoint {
  readonly node: string
  readonly point: Point
  /** Whose it is: journal, load, look-up … */
  readonly what: string
  /** Whether it decides with its license locked. */
  readonly isLocking?: boolean
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

type Fault = Exclude<Verdict, "pass">

/** What can happen where. A load is not tried again, so it only ever loses its connection. */
export const possible = ({ isAlone, point, what }: Omit<Checkpoint, "node">): ReadonlyArray<Fault> => {
  if (isAlone || point === "read" || point === "begin") return ["lost"]
  if (what === "load") return ["lost", "cut"]
  const within: ReadonlyArray<Fault> = ["lost", "serialization", "deadlock", "refused", "cut", "undecided"]
  return point === "commit" ? [...within.slice(0, -1), "unacknowledged", "undecided"] : within
}

/** Where a license is locked and decided on, as a person reads it. */
const lockedPoints: { readonly [point in Exclude<Point, "read">]: string } = {
  begin: "before it is locked",
  locked: "before it is decided",
  decided: "before it is written",
  commit: "at its COMMIT"
}

const ofConnection: ReadonlyArray<Fault> = ["lost", "cut", "unacknowledged", "undecided"]

/** What is told of a fault, beside its name, where a license is locked. */
export const lockedFaultName = (point: Point, fault: Fault): string => {
  const what = ofConnection.includes(fault) ? "connection lost" : "server refuses"
  return `license locked, ${point === "read" ? point : lockedPoints[point]}: ${what}`
}

/** All that can happen to a transaction that decides with its license locked. */
export const lockedFaultNames: ReadonlySet<string> = new Set(
  (["begin", "locked", "decided", "commit"] as const).flatMap((point) =>
    possible({ point, what: "locked license" }).map((fault) => lockedFaultName(point, fault))
  )
)
