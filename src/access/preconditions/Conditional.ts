/**
 * The contract half of conditional changes (RFC 9110, section 13.1.1): with `If-Match`, a record is changed only if it still has
 * this ETag. An ETag covers the fields that a PATCH can change, so that an edit of a license succeeds while the license is used.
 */
import { HttpApiMiddleware } from "effect/http-api"
import { failures } from "../../contract/api/Failure.ts"

/** Bytes of the longest If-Match. */
export const ifMatchMax = 1_024

const tag = '(W/)?"[!#-~]*"'
/** Entity tags, or `*`. */
export const ifMatchPattern = String.raw`^(\*|${tag}([ \t]*,[ \t]*${tag})*)$`

/** On the operations that take If-Match. */
export class Conditional extends HttpApiMiddleware.Service<Conditional>()(
  "licensing/access/preconditions/Conditional",
  { error: failures("BAD_REQUEST", "CONFLICT") }
) {}
