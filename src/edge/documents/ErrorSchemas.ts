/** The schemas of the error envelope (docs/API.md, "Errors"). */
import { type JsonSchema, Schema } from "effect"
import { RefusalFacts } from "../../contract/api/RefusalFacts.ts"
import { withPlainValues } from "./Schemas.ts"

type Json = JsonSchema.JsonSchema

const refer = (name: string): Json => ({ $ref: `#/components/schemas/${name}` })

const errorObject: Json = {
  type: "object",
  description: "Why a request was refused.",
  properties: {
    code: { type: "string", description: "The reason, for programs: one of the codes in `x-error-codes`." },
    message: { type: "string", description: "One sentence for people. It may change." },
    detail: { type: "string", description: "The subject of the code: a field's path, a missing scope, a limit." },
    details: {
      type: "array",
      description:
        "Each wrong field of a refused body or query: INVALID_JSON, VALIDATION_ERROR, INVALID_QUERY. The first one is in `detail` and `message`, too.",
      maxItems: 10,
      items: refer("FieldFault")
    }
  },
  required: ["code", "message"]
}

const fieldFault: Json = {
  type: "object",
  description: "A wrong field or query parameter.",
  properties: {
    path: { type: "string", description: "The field's path, or the parameter's name." },
    message: { type: "string", description: "What is wrong with it." }
  },
  required: ["path", "message"]
}

const facts = withPlainValues(Schema.toJsonSchemaDocument(RefusalFacts).schema)

const envelope = (description: string, error: string, properties: { readonly [field: string]: Json } = {}): Json => ({
  type: "object",
  description,
  properties: { error: refer(error), ...properties, meta: refer("Meta") },
  required: ["error", "meta"]
})

export const errorSchemas: JsonSchema.Definitions = {
  ErrorResponse: envelope("A refusal.", "ErrorObject"),
  ErrorObject: errorObject,
  FieldFault: fieldFault,
  SignedErrorResponse: envelope(
    "A refusal of a runtime operation. If the license key is right, the signature covers the JSON bytes of `error` exactly as sent, and `error` has the facts that explain the refusal. A client ignores a refusal without a valid signature.",
    "SignedErrorObject",
    { signature: refer("Signature") }
  ),
  SignedErrorObject: {
    ...errorObject,
    description: "Why a runtime request was refused, and the facts about its license.",
    properties: { ...(errorObject["properties"] as object), ...(facts["properties"] as object) }
  }
}
