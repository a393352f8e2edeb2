/** Keeps the ETag of a record beside the decoded record, for a later change of it (RFC 9110, section 13.1.1). */
import { Effect } from "effect"
import { Call } from "./Call.ts"

const tags = new WeakMap<object, string>()

/** Keeps the ETag of the response that a value was decoded from. */
export const keepTag = (value: unknown) =>
  Effect.map(Call, ({ received }) => {
    const tag = received?.headers["etag"]
    if (tag !== undefined && typeof value === "object" && value !== null) tags.set(value, tag)
  })

/** The ETag of a record. A record without one, such as a row of a list, is a mistake of the caller. */
export const tagOf = (record: object): Effect.Effect<string> => {
  const tag = tags.get(record)
  return tag === undefined
    ? Effect.die(new Error("This record was not read by an operation that returns its ETag: get the record first."))
    : Effect.succeed(tag)
}
