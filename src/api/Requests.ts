/**
 * The contract half of request handling, in two middlewares around authorization. `Intake` comes before it: method, size and
 * content type are answered to anyone. `Decoding` comes after it: what the body says is looked at only for those let in.
 */

import { Context } from "effect"
import { HttpApiMiddleware } from "effect/http-api"
import { failures } from "./Failure.ts"

/** Bytes of the largest request body. */
export const bodyBytesMax = 262_144

/** Refuses bodies that are too large or of another type, before the caller is looked at. */
export class Intake extends HttpApiMiddleware.Service<Intake>()("licensing/http/Intake", {
  error: failures("BAD_REQUEST", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "INTERNAL_ERROR", "NOT_READY")
}) {}

/** Turns whatever is wrong with a body or query into the contract's error for it. */
export class Decoding extends HttpApiMiddleware.Service<Decoding>()("licensing/http/Decoding", {
  error: failures("INVALID_JSON", "INVALID_QUERY", "VALIDATION_ERROR", "NOT_FOUND")
}) {}

/** Table that holds what a path parameter names, so that an unknown path id is answered before faults in the body. */
export class PathTables extends Context.Service<PathTables, { readonly [param: string]: string }>()(
  "licensing/api/PathTables"
) {}
