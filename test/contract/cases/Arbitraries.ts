/** Random bodies: a valid one in which one to three fields have other values, valid or not. The oracle decides which. */
import fc from "fast-check"
import { character } from "../../support/rules/Characters.ts"
import { valuesFor } from "./Mutations.ts"
import { type Json, nameOf, resolved } from "./Surface.ts"

/** Valid instants, near and far. */
const dates = fc
  .date({ min: new Date("1900-01-01T00:00:00Z"), max: new Date("2900-01-01T00:00:00Z"), noInvalidDate: true })
  .map((date) => date.toISOString())

/** No object is made with a backslash in a name: it may mislead the parser of the service in this process (nodejs/node#63785). */
const name = fc.string().filter((text) => !text.includes("\\"))
const stringUnit = fc.string({ unit: character, minLength: 1, maxLength: 1 }).filter((unit) => unit !== "\\")

/** Values of the JSON type of a schema, mostly valid ones. */
const fitting = (given: Json): fc.Arbitrary<unknown> => {
  const schema = resolved(given)
  const alternatives = (schema["anyOf"] ?? schema["oneOf"]) as ReadonlyArray<Json> | undefined
  if (alternatives !== undefined) return fc.oneof(...alternatives.map(fitting))
  if (Array.isArray(schema["enum"])) return fc.constantFrom(...schema["enum"])
  if (nameOf(given) === "Metadata")
    return fc.dictionary(name, fc.jsonValue({ maxDepth: 3, stringUnit }), { maxKeys: 8 })
  const {
    minimum = 0,
    maximum = Number.MAX_SAFE_INTEGER,
    minLength = 0,
    maxLength = 300
  } = schema as Record<string, number>
  switch (schema["type"]) {
    case "string":
      return schema["format"] === "date-time"
        ? dates
        : fc.oneof(
            fc.string({ minLength, maxLength: Math.min(maxLength, minLength + 20) }),
            fc.string({ unit: "grapheme", minLength, maxLength: Math.min(maxLength, minLength + 20) }),
            fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,63}$/)
          )
    case "integer":
    case "number":
      return fc.oneof(
        fc.integer({ min: minimum, max: Math.min(maximum, 2 ** 31 - 1) }),
        fc.constantFrom(minimum, maximum)
      )
    case "boolean":
      return fc.boolean()
    case "array":
      return fc.array(fitting((schema["items"] ?? {}) as Json), { maxLength: 4 })
    case "object":
      return fc.record(
        Object.fromEntries(
          Object.entries((schema["properties"] ?? {}) as Record<string, Json>).map(([name, member]) => [
            name,
            fitting(member)
          ])
        ),
        { requiredKeys: (schema["required"] ?? []) as ReadonlyArray<string> as Array<string> }
      )
    default:
      return fc.jsonValue({ maxDepth: 3 })
  }
}

/** Any JSON value. */
const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 4, stringUnit }),
  fc.double(),
  fc.integer(),
  fc.string({ unit: character })
)

const changeTo = (name: string, schema: Json) =>
  fc
    .oneof(
      { weight: 4, arbitrary: fitting(schema) },
      { weight: 3, arbitrary: fc.constantFrom(...valuesFor(schema).map(([, value]) => value)) },
      { weight: 2, arbitrary: anything },
      { weight: 1, arbitrary: fc.constant(undefined) }
    )
    .map((value) => ({ [name]: value }))

/** Bodies similar to a valid one. */
export const bodiesNear = (schema: Json, right: object): fc.Arbitrary<object> => {
  const fields = Object.entries((resolved(schema)["properties"] ?? {}) as Record<string, Json>)
  const changes = fields.map(([name, member]) => ({ weight: 5, arbitrary: changeTo(name, member) }))
  const unknown = fc
    .tuple(
      name.filter((text) => text !== ""),
      anything
    )
    .map(([name, value]) => ({ [name]: value }))
  return fc
    .array(fc.oneof(...changes, { weight: 1, arbitrary: unknown }), { minLength: 1, maxLength: 3 })
    .map((made) => Object.assign({}, right, ...made))
}

/** Values of a query parameter, URL-encoded. */
export const queryValues: fc.Arbitrary<string> = fc
  .oneof(
    fc.string(),
    fc.string({ unit: "grapheme" }),
    fc.string({ unit: "binary-ascii" }),
    fc.integer().map(String),
    fc.double().map(String),
    dates,
    fc.constantFrom("", " ", "0", "-1", "1", "200", "1e3", "null", "true", "active", "٣", "1,2", "[]", "%", "'")
  )
  .map(encodeURIComponent)
