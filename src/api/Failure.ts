/**
 * Every refusal the service can give: its code, its HTTP status and the error envelope on the wire.
 *
 * One table holds all codes, so a code means one status everywhere. Services fail with a `Refusal` whose type names its
 * codes; an endpoint declares the same codes with `failures(...)`; the compiler holds the two together and the document
 * is derived from it.
 */
import { Data, Effect, Schema, SchemaGetter } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { currentMeta, Meta, metaOf } from "./Meta.ts"
import { RequestContext } from "./RequestContext.ts"

/** Error codes with their HTTP status. A limit that a policy sets is 403; 409 is a clash with another request or a record. */
export const statuses = {
  BAD_REQUEST: 400,
  INVALID_JSON: 400,
  INVALID_QUERY: 400,
  IDEMPOTENCY_KEY_REQUIRED: 400,
  TOKEN_MISSING: 401,
  TOKEN_MALFORMED: 401,
  TOKEN_INVALID: 401,
  TOKEN_EXPIRED: 401,
  TOKEN_INACTIVE: 401,
  TOKEN_ADDRESS_BLOCKED: 401,
  LICENSE_KEY_MISSING: 401,
  LICENSE_KEY_INVALID: 401,
  TOKEN_SCOPE_DENIED: 403,
  LICENSE_SUSPENDED: 403,
  LICENSE_EXPIRED: 403,
  LICENSE_REVOKED: 403,
  LICENSE_NOT_STARTED: 403,
  DEVICE_BLACKLISTED: 403,
  DEVICE_NOT_ACTIVE: 403,
  HEARTBEAT_OVERDUE: 403,
  VM_NOT_ALLOWED: 403,
  CONTAINER_NOT_ALLOWED: 403,
  OFFLINE_NOT_ALLOWED: 403,
  FLOATING_NOT_ENABLED: 403,
  ACTIVATION_LIMIT_REACHED: 403,
  CONTAINER_LIMIT_REACHED: 403,
  FLOATING_LIMIT_REACHED: 403,
  USAGE_LIMIT_EXCEEDED: 403,
  FEATURE_NOT_ENTITLED: 403,
  FEATURE_DISABLED: 403,
  FEATURE_EXPIRED: 403,
  VERSION_UNKNOWN: 403,
  VERSION_NOT_ENTITLED: 403,
  LEASE_EXPIRED: 403,
  NOT_FOUND: 404,
  DEVICE_NOT_FOUND: 404,
  LEASE_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  DUPLICATE_CODE: 409,
  DUPLICATE_EXTERNAL_ID: 409,
  DUPLICATE_VERSION: 409,
  RESOURCE_IN_USE: 409,
  LICENSE_STATE_CONFLICT: 409,
  DEVICE_STATE_CONFLICT: 409,
  TRANSFER_LIMIT_REACHED: 409,
  IDEMPOTENCY_IN_PROGRESS: 409,
  EVENT_ID_CONFLICT: 409,
  LEASE_NOT_ACTIVE: 409,
  EXPORT_NOT_READY: 409,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  VALIDATION_ERROR: 422,
  IDEMPOTENCY_KEY_REUSED: 422,
  LICENSE_NOT_RENEWABLE: 422,
  EXPIRY_NOT_IN_FUTURE: 422,
  CUSTOM_FIELD_TYPE_MISMATCH: 422,
  CUSTOM_FIELD_REQUIRED: 422,
  LINKAGE_MISMATCH: 422,
  RATE_LIMITED: 429,
  INTERNAL_ERROR: 500,
  NOT_READY: 503
} as const

export type Code = keyof typeof statuses

class RefusalOf<C extends Code> extends Data.TaggedError("Refusal")<{
  readonly code: Code
  /** One plain sentence that says what to do. */
  readonly message: string
  /** The machine-readable pointer: a field's path, a needed scope, a limit. */
  readonly detail?: string
}> {
  declare readonly code: C
}

/** A refusal with one of the codes `C`; a union of codes is a union of refusals, so that unions of schemas accept it. */
export type Refusal<C extends Code = Code> = C extends Code ? RefusalOf<C> : never

export const refuse = <const C extends Code>(code: C, message: string, detail?: string): Refusal<C> =>
  new RefusalOf<C>({ code, message, ...(detail === undefined ? undefined : { detail }) }) as Refusal<C>

export const isRefusal = (value: unknown): value is RefusalOf<Code> => value instanceof RefusalOf

/** The error body of the contract, section "Errors". */
const Wire = (codes: ReadonlyArray<Code>) =>
  Schema.Struct({
    error: Schema.Struct({
      code: Schema.Literals(codes),
      message: Schema.String,
      detail: Schema.optionalKey(Schema.String)
    }),
    meta: Meta
  })

type FailureSchema<C extends Code> = Schema.Codec<Refusal<C>, ReturnType<typeof Wire>["Encoded"]>

const failure = <C extends Code>(codes: ReadonlyArray<C>, status: number): FailureSchema<C> => {
  const wanted = new Set<Code>(codes)
  const refusal = Schema.declare((value): value is Refusal<C> => isRefusal(value) && wanted.has(value.code))
  return Wire(codes).pipe(
    Schema.decodeTo(refusal, {
      decode: SchemaGetter.transform(({ error }) => refuse(error.code as C, error.message, error.detail)),
      encode: SchemaGetter.transformEffect((refusal: Refusal<C>) =>
        Effect.andThen(
          noteRefused(refusal.code),
          Effect.map(currentMeta, (meta) => ({ error: errorBody(refusal), meta }) as never)
        )
      )
    }),
    HttpApiSchema.status(status)
  ) as never
}

/** Leaves the code with the request's context, for whoever counts answers. */
export const noteRefused = (code: Code): Effect.Effect<void> =>
  Effect.map(RequestContext, (context) => {
    context.refused = code
  })

const errorBody = (refusal: RefusalOf<Code>) => ({
  code: refusal.code,
  message: refusal.message,
  ...(refusal.detail === undefined ? undefined : { detail: refusal.detail })
})

/** The error schemas of an operation that can refuse with these codes: one schema for each status. */
export const failures = <const C extends Code>(...codes: ReadonlyArray<C>): ReadonlyArray<FailureSchema<C>> =>
  Array.from(
    Map.groupBy(new Set(codes), (code) => statuses[code]),
    ([status, group]) => failure(group, status)
  )

/** The error envelope as a value, for answers given before or outside the routes. */
export const errorEnvelope = (refusal: RefusalOf<Code>, requestId: string, nowMillis: number) => ({
  error: errorBody(refusal),
  meta: metaOf(requestId, nowMillis)
})
