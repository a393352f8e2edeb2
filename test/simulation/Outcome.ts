/** What a caller was told. */
import type { Code } from "../../src/api/ErrorCode.ts"

export type Outcome =
  | { readonly kind: "accepted"; readonly reply: unknown }
  | { readonly kind: "refused"; readonly code: Code }
  /** No answer, or one that says nothing: it may have been done, or not. */
  | { readonly kind: "unknown"; readonly why: string }
