/** What a simulation is for: something that must hold does not. */
import { inspect } from "node:util"

export class Violation extends Error {
  override readonly name = "Violation"
  /** Which checker found it. */
  checker: Checker = "liveness"
}

/** What is looked at, as docs/TESTING.md lists it. */
export type Checker =
  | "liveness"
  | "sequences"
  | "consumptions"
  | "fence"
  | "limits"
  | "counters"
  | "ledger"
  | "versions"
  | "kept answers"
  | "catalog"
  | "history"

/** What is found meanwhile is the checker's. */
export const by = <A>(checker: Checker, check: () => A): A => {
  try {
    return check()
  } catch (error) {
    if (error instanceof Violation) error.checker = checker
    throw error
  }
}

export const violation: (what: string) => never = (what) => {
  throw new Violation(what)
}

/** A value as a person reads it, in one line. */
export const show = (value: unknown): string =>
  inspect(value, { breakLength: Number.POSITIVE_INFINITY, compact: true, depth: 6, maxStringLength: 200 })

/** What a story needs not tell: who has read the seed knows it, or can look it up. */
const known =
  /^(redacted|is_vm|is_container|hostname|fingerprint|cluster_id|pod_name|issued_at|metadata|license_id|product_id)$/

/** A command or an answer without what everybody knows. */
export const brief = (value: unknown): string =>
  show(
    JSON.parse(
      JSON.stringify(value ?? null, (member, inner) => {
        if (known.test(member)) return undefined
        return typeof inner === "string" && /^[0-9a-f]{64}$/.test(inner) ? inner.slice(0, 8) : inner
      })
    )
  )
