/** Keeps the ETag of a record beside the decoded record, for a later change of it (RFC 9110, section 13.1.1). */
import { Effect } from "effect"
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import { Call } from "./Call.ts"

const tags = new WeakMap<object, string>()

/** Keeps the ETag of the response that a value was decoded from. */
export const keepTag = (value: unknown) =>
  Effect.map(Call, ({ received }) => {
    const tag = received?.headers["etag"]
    if (tag !== undefined && typeof value === "object" && value !== null) tags.set(value, tag)
  })

/** The ETag of a record. A row of a list has none, nor has the response to a change that was repeated after a lost response. */
export const tagOf = (record: object): Effect.Effect<string, Refusal<"CONFLICT">> => {
  const tag = tags.get(record)
  return tag === undefined ? Effect.fail(unknownState) : Effect.succeed(tag)
}

const unknownState = refuse(
  "CONFLICT",
  "This record came without an ETag, so nothing tells whether it has changed: get the record, then send your change.",
  "If-Match"
)
