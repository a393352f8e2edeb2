/**
 * Finds variables with the service's prefix that are not settings. Most are misspelled names, whose values would be ignored silently.
 */
import { ConfigProvider, Effect } from "effect"

const prefix = "LICENSING"
/** Variables that only commands read. */
const ofCommands = ["LICENSING_URL", "LICENSING_TOKEN"]
/** The maximum number of edits between similar names. */
const editsMax = 6

/** One line for each variable that is not among the known names, with the nearest known name if one is similar. */
export const unknownAmong = (known: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    ConfigProvider.ConfigProvider.use((provider) => namesUnder(provider, [prefix])),
    (names) =>
      names.filter((name) => !known.includes(name) && !ofCommands.includes(name)).map((name) => lineAbout(name, known))
  )

/** The names of all variables below a path of the provider, which splits names at each underscore. */
const namesUnder = (
  provider: ConfigProvider.ConfigProvider,
  path: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const node = yield* Effect.orElseSucceed(provider.load(path), () => undefined)
    if (node === undefined) return []
    const own = node.value === undefined || path.length === 1 ? [] : [path.join("_")]
    const keys = node._tag === "Record" ? [...node.keys] : node._tag === "Array" ? indexesOf(node.length) : []
    const below = yield* Effect.forEach(keys, (key) => namesUnder(provider, [...path, key]))
    return own.concat(below.flat())
  })

/** The provider treats numbers at the end of names as indexes of a list. */
const indexesOf = (length: number) => Array.from({ length: Math.min(length, 64) }, (_, index) => String(index))

const lineAbout = (name: string, known: ReadonlyArray<string>): string => {
  const nearest = nearestOf(name, known)
  return nearest === undefined
    ? `${name} is not a setting and is ignored: docs/SETTINGS.md lists all settings.`
    : `${name} is not a setting and is ignored: did you mean ${nearest}?`
}

const nearestOf = (name: string, known: ReadonlyArray<string>): string | undefined => {
  const ranked = known.map((other) => ({ other, edits: editsBetween(name, other) })).sort((a, b) => a.edits - b.edits)
  const [first] = ranked
  const ownLetters = name.length - prefix.length - 1
  return first !== undefined && first.edits <= Math.min(editsMax, ownLetters / 2) ? first.other : undefined
}

/** The Levenshtein distance: the lowest number of letters to insert, delete or replace. */
const editsBetween = (one: string, other: string): number => {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (const [index, letter] of Array.from(one).entries()) {
    const next = [index + 1]
    for (let at = 0; at < other.length; at++) {
      const replaced = row[at]! + (other[at] === letter ? 0 : 1)
      next.push(Math.min(replaced, row[at + 1]! + 1, next[at]! + 1))
    }
    row = next
  }
  return row[other.length]!
}
