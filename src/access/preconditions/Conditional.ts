/**
 * The contract half of conditional changes (RFC 9110, section 13.1.1): with `If-Match`, a record is changed only if it still has
 * this ETag. An ETag covers what a PATCH of the record can change, so that use of a license does not refuse an edit of it.
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
  {
    error: failures("BAD_REQUEST", "CONFLICT")
  }
) {}
