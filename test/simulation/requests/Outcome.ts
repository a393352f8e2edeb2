/** The outcome of a request for its caller. */
import type { Code } from "../../../src/contract/api/ErrorCode.ts"

export type Outcome =
  | { readonly kind: "accepted"; readonly reply: unknown }
  | { readonly kind: "refused"; readonly code: Code }
  /** No answer, or one that leaves open whether the request was executed. */
  | { readonly kind: "unknown"; readonly why: string }
