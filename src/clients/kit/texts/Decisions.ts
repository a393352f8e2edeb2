/** What the application should do on each code: the table of docs/VERIFYING.md as data. */

/** Run: as before. Warn: run, and tell the user. Ask: the user has to do something first. Stop: end the licensed use. */
export type Decision = "run" | "warn" | "ask" | "stop"

/**
 * What a refusal ends: everything (license), the activation, the seat, or only the request. A lost activation or seat is first
 * taken again.
 */
type Reach = "license" | "activation" | "seat" | "request"

interface Rule {
  readonly decision: Decision
  readonly reach: Reach
  /** Set if the application first activates, or takes a seat, once again. */
  readonly again?: true
}

const rule = (decision: Decision, reach: Reach): Rule => ({ decision, reach })
const again = (reach: Reach): Rule => ({ decision: "stop", reach, again: true })

const rules = {
  LICENSE_REVOKED: rule("stop", "license"),
  LICENSE_SUSPENDED: rule("stop", "license"),
  LICENSE_EXPIRED: rule("ask", "license"),
  LICENSE_NOT_STARTED: rule("ask", "license"),
  PRODUCT_MISMATCH: rule("ask", "license"),
  DEVICE_BLACKLISTED: rule("stop", "license"),
  DEVICE_NOT_FOUND: again("activation"),
  DEVICE_NOT_ACTIVE: again("activation"),
  HEARTBEAT_OVERDUE: again("activation"),
  ACTIVATION_LIMIT_REACHED: rule("ask", "activation"),
  CONTAINER_LIMIT_REACHED: rule("ask", "activation"),
  SELF_DEACTIVATION_LIMIT_REACHED: rule("warn", "request"),
  FLOATING_LIMIT_REACHED: rule("ask", "seat"),
  FLOATING_NOT_ENABLED: rule("ask", "seat"),
  BORROWING_NOT_ALLOWED: rule("warn", "request"),
  BORROW_TOO_LONG: rule("warn", "request"),
  LEASE_EXPIRED: again("seat"),
  LEASE_NOT_ACTIVE: again("seat"),
  LEASE_NOT_FOUND: again("seat"),
  VM_NOT_ALLOWED: rule("stop", "license"),
  CONTAINER_NOT_ALLOWED: rule("stop", "license"),
  VERSION_UNKNOWN: rule("ask", "license"),
  VERSION_NOT_ENTITLED: rule("ask", "license"),
  FEATURE_NOT_ENTITLED: rule("warn", "request"),
  FEATURE_DISABLED: rule("warn", "request"),
  FEATURE_EXPIRED: rule("warn", "request"),
  USAGE_LIMIT_EXCEEDED: rule("warn", "request"),
  REVERSAL_NOT_POSSIBLE: rule("warn", "request"),
  OFFLINE_NOT_ALLOWED: rule("warn", "request"),
  DEVICE_STATE_CONFLICT: rule("run", "request"),
  EVENT_ID_CONFLICT: rule("warn", "request"),
  INVALID_JSON: rule("warn", "request"),
  VALIDATION_ERROR: rule("warn", "request")
} as const satisfies { readonly [code: string]: Rule }

export type RefusalCode = keyof typeof rules

/** Reasons of the kit's own. */
type OwnReason =
  /** A believed response says so, and it is recent. */
  | "LICENSED"
  /** The license has expired; the policy still serves it until access_ends_at. */
  | "GRACE_PERIOD"
  /** An offline envelope says so. */
  | "OFFLINE"
  /** No activation and no seat: ask for the license key. */
  | "NOT_ACTIVATED"
  /** The seat's lease has ended, and no heartbeat has renewed it. */
  | "SEAT_ENDED"
  /** No believed response came when one was due. */
  | "NOT_REACHED"
  /** This machine's clock differs from the service's by more than five minutes. */
  | "CLOCK_WRONG"
  /** The application's store failed: the state is lost at the next start. */
  | "STORE_FAILED"
  /** The service does not know the license key. The response that says so is not signed. */
  | "LICENSE_KEY_INVALID"
  | "LICENSE_KEY_MISSING"

/** Why. Later versions of the service may refuse with further codes. */
export type Reason = OwnReason | RefusalCode | (string & {})

const codes: ReadonlyMap<string, Rule> = new Map(Object.entries(rules))
const unknownCode = rule("warn", "request")

/** An unknown code ends nothing: the stored response decides, until its end. */
export const ruleOf = (code: string): Rule => codes.get(code) ?? unknownCode

const severities: { readonly [Name in Decision]: number } = { run: 0, warn: 1, ask: 2, stop: 3 }

export const isStricter = (one: Decision, other: Decision): boolean => severities[one] > severities[other]

/** Whether a code says that there is nothing to give back. */
export const isNothingHeld = (code: string): boolean =>
  code === "DEVICE_STATE_CONFLICT" || code === "DEVICE_NOT_FOUND" || code.startsWith("LEASE_")
