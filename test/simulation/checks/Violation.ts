/** A violated invariant. */
import { inspect } from "node:util"

export class Violation extends Error {
  override readonly name = "Violation"
  /** Which checker found it. */
  checker: Checker = "liveness"
}

/** The checkers, as listed in docs/TESTING.md. */
export type Checker =
  | "liveness"
  | "sequences"
  | "consumptions"
  | "fence"
  | "notices"
  | "limits"
  | "counters"
  | "ledger"
  | "versions"
  | "kept answers"
  | "catalog"
  | "history"

/** Attributes violations to a checker. */
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

/** A value in one readable line. */
export const show = (value: unknown): string =>
  inspect(value, { breakLength: Number.POSITIVE_INFINITY, compact: true, depth: 6, maxStringLength: 200 })

/** Members that a transcript omits: they follow from the seed. */
const known =
  /^(redacted|is_vm|is_container|hostname|fingerprint|cluster_id|pod_name|issued_at|metadata|license_id|product_id)$/

/** A command or an answer without the omitted members. */
export const brief = (value: unknown): string =>
  show(
    JSON.parse(
      JSON.stringify(value ?? null, (member, inner) => {
        if (known.test(member)) return undefined
        return typeof inner === "string" && /^[0-9a-f]{64}$/.test(inner) ? inner.slice(0, 8) : inner
      })
    )
  )

/** Both must be the same. */
export const hold = (what: string, one: unknown, other: unknown): void => {
  if (one !== other) violation(`${what}: ${show(one)} and ${show(other)}`)
}
