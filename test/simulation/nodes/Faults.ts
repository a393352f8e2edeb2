/** The faults between a node and the database, and their effects. */
import { SqlError } from "effect/sql"

/** The checkpoints of a transaction after BEGIN: three if it locks a license before it decides, else one. */
export type TransactionPoint = "locked" | "decided" | "commit"

/** Statements outside transactions, BEGIN, and the checkpoints within transactions. */
type Point = "read" | "begin" | TransactionPoint

/** What happens at a checkpoint. */
export type Verdict =
  | "pass"
  /** The connection is lost before anything was sent: nothing is executed. */
  | "lost"
  /** The server refuses, and rolls back. */
  | "serialization"
  | "deadlock"
  | "refused"
  /** The server ends the connection just before it reads COMMIT. */
  | "cut"
  /** Committed; the connection is lost before the acknowledgement. */
  | "unacknowledged"
  /** The connection is lost while the server works: it commits or rolls back later, and rolls back an incomplete transaction. */
  | "undecided"

export interface Checkpoint {
  readonly node: string
  readonly point: Point
  /** The kind of work: journal, load, look-up … */
  readonly what: string
  /** Whether the transaction decides with its license locked. */
  readonly isLocking?: boolean
  /** Its caller no longer waits for it. */
  readonly isAlone?: boolean
}

/** The error that the driver reports. */
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

/** Readable names of the scheduler's faults. */
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

/** The possible faults of a checkpoint. A load is not retried, so it can only lose its connection. */
export const possible = ({ isAlone, point, what }: Omit<Checkpoint, "node">): ReadonlyArray<Fault> => {
  if (isAlone || point === "read" || point === "begin") return ["lost"]
  if (what === "load") return ["lost", "cut"]
  const within: ReadonlyArray<Fault> = ["lost", "serialization", "deadlock", "refused", "cut", "undecided"]
  return point === "commit" ? [...within.slice(0, -1), "unacknowledged", "undecided"] : within
}

/** Readable names of the checkpoints with a locked license. */
const lockedPoints: { readonly [point in Exclude<Point, "read">]: string } = {
  begin: "before it is locked",
  locked: "before it is decided",
  decided: "before it is written",
  commit: "at its COMMIT"
}

const ofConnection: ReadonlyArray<Fault> = ["lost", "cut", "unacknowledged", "undecided"]

/** The additional name of a fault while a license is locked. */
export const lockedFaultName = (point: Point, fault: Fault): string => {
  const what = ofConnection.includes(fault) ? "connection lost" : "server refuses"
  return `license locked, ${point === "read" ? point : lockedPoints[point]}: ${what}`
}

/** All faults of a transaction that decides with its license locked. */
export const lockedFaultNames: ReadonlySet<string> = new Set(
  (["begin", "locked", "decided", "commit"] as const).flatMap((point) =>
    possible({ point, what: "locked license" }).map((fault) => lockedFaultName(point, fault))
  )
)
