/**
 * Every refusal the service can give: its code, its HTTP status and the error envelope on the wire.
 *
 * One table holds all codes, so a code means one status everywhere. Services fail with a `Refusal` whose type names its
 * codes; an endpoint declares the same codes with `failures(...)`; the compiler checks that both agree, and the OpenAPI
 * document is derived from them.
 */
import { Data, Effect, Schema, SchemaGetter } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { Signature } from "./Envelope.ts"
import { type Code, statuses } from "./ErrorCode.ts"
import { currentMeta, Meta, metaOf } from "./Meta.ts"
import { RefusalFacts } from "./RefusalFacts.ts"
import { RequestContext } from "./RequestContext.ts"

/** A wrong field or query parameter. */
export interface FaultDetail {
  readonly path: string
  readonly message: string
}

interface WaitedFor {
  readonly waited_for: string
  readonly license?: string
}

interface Fields {
  readonly code: Code
  /** One plain sentence that says what to do. */
  readonly message: string
  /** Machine-readable: a field's path, a required scope, a limit. */
  readonly detail?: string
  /** Every wrong field of a body or query that was refused. */
  readonly details?: ReadonlyArray<FaultDetail>
  /** The facts that explain a runtime operation's refusal. Absent unless the license key is valid. */
  readonly facts?: RefusalFacts
  /** Set if an event records the refusal. */
  readonly isRecorded?: boolean
  /** Set if the same request succeeds later by itself: it is not stored under an Idempotency-Key. */
  readonly isTemporary?: boolean
  /** Only logged: what the request waited for until its deadline. */
  readonly waitedFor?: WaitedFor
  /** In a client: the signature over the canonical JSON of the response's `error`. */
  readonly signature?: Signature
  /** In a client: the bytes of `error` as received, which the signature covers. */
  readonly bytes?: Uint8Array
}

class RefusalOf<C extends Code> extends Data.TaggedError("Refusal")<Fields> {
  declare readonly code: C

  constructor(fields: Fields & { readonly code: C }) {
    // A refusal is expected, so its stack is not used. Recording one costs 10 microseconds.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(fields)
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** A refusal with one of the codes `C`; a union of codes is a union of refusals, so that unions of schemas accept it. */
export type Refusal<C extends Code = Code> = C extends Code ? RefusalOf<C> : never

export const refuse = <const C extends Code>(
  code: C,
  message: string,
  detail?: string,
  more?: Pick<RefusalOf<C>, "bytes" | "details" | "facts" | "isRecorded" | "isTemporary" | "signature" | "waitedFor">
): Refusal<C> =>
  new RefusalOf<C>({ code, message, ...(detail === undefined ? undefined : { detail }), ...more }) as Refusal<C>

/** A message is one line, also if it names what a request has sent. */
export const inOneLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, "\u{FFFD}")

/** Characters of an unknown id in a message: a path may contain an id of any length. */
const idLengthMax = 64

/** The message for an id that no record of this kind has. */
export const unknownId = (noun: string, id: string): string => {
  const shown = id.length > idLengthMax ? `${id.slice(0, idLengthMax).toWellFormed()}…` : id
  return `No ${noun} has the id ${inOneLine(shown)}: use the id of an existing ${noun.replace(/ of the .*/, "")}.`
}

export const refuseUnknownId = (noun: string, id: string, detail = "id"): Refusal<"NOT_FOUND"> =>
  refuse("NOT_FOUND", unknownId(noun, id), detail)

/** The message of refusals while a customer is being erased. */
export const isErasing = "The customer is being erased: send the request again when that is done."

/** Refuses a change to the records of a customer that is being erased. */
export const refuseErasing = (detail: string): Refusal<"CONFLICT"> =>
  refuse("CONFLICT", isErasing, detail, { isTemporary: true })

export const isRefusal = (value: unknown): value is RefusalOf<Code> => value instanceof RefusalOf

/** The error envelope (docs/API.md, "Errors"). Refusals of runtime operations may have facts and a signature. */
const Wire = (codes: ReadonlyArray<Code>) =>
  Schema.Struct({
    error: Schema.Struct({
      code: Schema.Literals(codes),
      message: Schema.String,
      detail: Schema.optionalKey(Schema.String),
      details: Schema.optionalKey(Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String }))),
      ...RefusalFacts.fields
    }),
    signature: Schema.optionalKey(Signature),
    meta: Meta
  })

type FailureSchema<C extends Code> = Schema.Codec<Refusal<C>, ReturnType<typeof Wire>["Encoded"]>

const failure = <C extends Code>(codes: ReadonlyArray<C>, status: number): FailureSchema<C> => {
  const declared = new Set<Code>(codes)
  const refusal = Schema.declare((value): value is Refusal<C> => isRefusal(value) && declared.has(value.code))
  return Wire(codes).pipe(
    Schema.decodeTo(refusal, {
      decode: SchemaGetter.transform(({ error: { code, message, detail, details, ...facts }, signature }) =>
        refuse(code as C, message, detail, {
          ...(details === undefined ? undefined : { details }),
          ...(signature === undefined ? undefined : { facts, signature })
        })
      ),
      encode: SchemaGetter.transformEffect((refusal: Refusal<C>) =>
        Effect.andThen(
          Effect.map(RequestContext, (context) => noteRefused(context, refusal)),
          Effect.map(currentMeta, (meta) => ({ error: errorBody(refusal), meta }) as never)
        )
      )
    }),
    HttpApiSchema.status(status)
  ) as never
}

/** Records the refusal in the request's context, where the metrics, the logs and the activity feed read it. */
export const noteRefused = (
  context: RequestContext,
  { code, isRecorded, message, waitedFor }: Pick<RefusalOf<Code>, "code" | "isRecorded" | "message" | "waitedFor">
): void => {
  context.refused = code
  if (statuses[code] === unavailable) context.unavailable = { reason: message, ...waitedFor }
  if (isRecorded === true) context.isRefusalRecorded = true
}

const unavailable = 503

export const errorBody = (refusal: RefusalOf<Code>) => ({
  code: refusal.code,
  message: refusal.message,
  ...(refusal.detail === undefined ? undefined : { detail: refusal.detail }),
  ...(refusal.details === undefined ? undefined : { details: refusal.details })
})

/** The error schemas of an operation that can refuse with these codes: one schema per status. */
export const failures = <const C extends Code>(...codes: ReadonlyArray<C>): ReadonlyArray<FailureSchema<C>> =>
  Array.from(
    Map.groupBy(new Set(codes), (code) => statuses[code]),
    ([status, group]) => failure(group, status)
  )

/** The error envelope as a value, for responses sent before or outside the routes. */
export const errorEnvelope = (refusal: RefusalOf<Code>, requestId: string, nowMillis: number) => ({
  error: errorBody(refusal),
  meta: metaOf(requestId, nowMillis)
})
