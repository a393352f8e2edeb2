/** The query parameter `expand`: the records that a license is returned with. */
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"
import { publishedAs } from "../../api/Text.ts"

const expandable = ["product", "policy", "customer"] as const
export type Expandable = (typeof expandable)[number]

export const Expand = Schema.String.annotate({
  description: `Records to return under expanded, separated by commas: ${expandable.join(", ")}.`
})
  .check(publishedAs({ items: { type: "string", enum: expandable }, minItems: 1 }))
  .pipe(
    Schema.decodeTo(Schema.Array(Schema.Literals(expandable)), {
      decode: SchemaGetter.transformEffect((text: string) => {
        const names = text.split(",").map((name) => name.trim())
        return names.every((name) => (expandable as ReadonlyArray<string>).includes(name))
          ? Effect.succeed(names as ReadonlyArray<Expandable>)
          : Effect.fail(new SchemaIssue.InvalidValue({ message: `Expected names out of ${expandable.join(", ")}` }))
      }),
      encode: SchemaGetter.transform((names) => names.join(","))
    })
  )
