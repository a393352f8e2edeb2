/**
 * The contract half of request handling: two middlewares around authorization. `Intake` runs before it and checks size and
 * content type for every caller. `Decoding` runs after it: it reads the body and checks its content, for authorized callers only.
 */

import { Context, Option } from "effect"
import { type HttpApiEndpoint, type HttpApiGroup, HttpApiMiddleware } from "effect/http-api"
import { failures } from "./Failure.ts"
import { valuesMaxDefault } from "./json/JsonLimits.ts"

/** Bytes of the largest request body, unless an operation declares another number. */
export const bodyBytesMax = 262_144

/** Bytes of the largest body of an operation. */
export const BodyBytesMax = Context.Reference<number>("licensing/contract/api/BodyBytesMax", {
  defaultValue: () => bodyBytesMax
})

/** Members and list elements of the largest body of an operation. */
export const BodyValuesMax = Context.Reference<number>("licensing/contract/api/BodyValuesMax", {
  defaultValue: () => valuesMaxDefault
})

/** Marks operations whose body may be left out, which is the same as an empty object. */
export const BodyOptional = Context.Reference<boolean>("licensing/contract/api/BodyOptional", {
  defaultValue: () => false
})

/** Marks operations that take the headers Range and If-None-Match, and so may answer 206 and 304. */
export const ServesRanges = Context.Reference<boolean>("licensing/contract/api/ServesRanges", {
  defaultValue: () => false
})

/** Refuses bodies that are announced as too large, or that are not JSON, before the caller is authenticated. */
export class Intake extends HttpApiMiddleware.Service<Intake>()("licensing/contract/api/Intake", {
  error: failures("BAD_REQUEST", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "INTERNAL_ERROR", "NOT_READY")
}) {}

/** Maps a faulty body or query to the contract's error for it. */
export class Decoding extends HttpApiMiddleware.Service<Decoding>()("licensing/contract/api/Decoding", {
  error: failures("INVALID_JSON", "INVALID_QUERY", "VALIDATION_ERROR", "NOT_FOUND", "BAD_REQUEST", "PAYLOAD_TOO_LARGE")
}) {}

/** The table of each path parameter's ids, so that an unknown path id is refused before faults in the body. */
export class PathTables extends Context.Service<PathTables, { readonly [param: string]: string }>()(
  "licensing/contract/api/PathTables"
) {}

/** The tables of the ids in an endpoint's path, in the order of their declaration. */
export const pathTablesOf = (
  endpoint: HttpApiEndpoint.Top,
  group: HttpApiGroup.Top
): ReadonlyArray<readonly [param: string, table: string]> => {
  const tables = Option.orElse(Context.getOption(endpoint.annotations, PathTables), () =>
    Context.getOption(group.annotations, PathTables)
  )
  const params = endpoint.path.split("/").filter((segment) => segment.startsWith(":"))
  return Object.entries(Option.getOrElse(tables, () => ({}))).filter(([param]) => params.includes(`:${param}`))
}
