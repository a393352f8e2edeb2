/**
 * Reads member names with escapes right. V8 (all of 13 and 14) may read such a name as another one that holds a backslash, once
 * a name like that has stood in its place in any text (nodejs/node#63785): whoever sends `{"\\":0}` would change what others mean by
 * `{"\n":0}`, and what the database holds would come back under another name. Texts without a backslash are not touched by it.
 */
import { Effect, Layer } from "effect"

type Parse = typeof JSON.parse

/**
 * In the place of the engine's parser from here on, for the platform and the database driver parse, too. Where the engine reads
 * right, nothing is changed.
 */
export const layer = Layer.effectDiscard(
  Effect.sync(() => {
    if (misreads(JSON.parse)) JSON.parse = parseNames(JSON.parse)
  })
)

// Behind a name of its own, after which no other text has another one: that is what misleads the engine.
const misreads = (parse: Parse): boolean => {
  parse(String.raw`{"misread?":0,"\\":0}`)
  return Object.keys(parse(String.raw`{"misread?":0,"\n":0}`))[1] !== "\n"
}

/** A text, and the colon after it where it is a member's name. What is no JSON is refused before: only there it could take long. */
const texts = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"(\s*:)?/g

/** A parser that shows the engine's no name with an escape: marks stand for them, and are taken out of what was read. */
export const parseNames =
  (parse: Parse): Parse =>
  (text, reviver) => {
    const value: unknown = parse(text, reviver)
    if (reviver !== undefined || typeof text !== "string" || !text.includes("\\")) return value
    const mark = markFor(text)
    const names: Array<string> = []
    const marked = text.replace(texts, (found: string, colon: string | undefined) => {
      if (colon === undefined || !found.includes("\\")) return found
      return `"${mark}${names.push(parse(found.slice(0, -colon.length))) - 1}"${colon}`
    })
    return names.length === 0
      ? value
      : named(parse(marked), (name) => (name.startsWith(mark) ? names[Number(name.slice(mark.length))]! : name))
  }

/** A few characters that stand nowhere in the text. */
const markFor = (text: string): string => {
  const taken = new Set(Array.from(text.matchAll(/~(\d{1,6})(?=~)/g), ([, digits]) => Number(digits)))
  let free = 0
  while (taken.has(free)) free++
  return `~${free}~`
}

const named = (value: unknown, nameOf: (name: string) => string): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((item) => named(item, nameOf))
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [nameOf(name), named(inner, nameOf)]))
}
