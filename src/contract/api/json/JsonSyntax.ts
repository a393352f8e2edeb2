/** Finds the position of a syntax error in text that `JSON.parse` rejects. Its own errors often lack a position, and quote the text. */

// Sticky: each matches only at the current position.
const whitespace = /[ \t\n\r]*/y
const comma = /,/y
const colon = /:/y
const quote = /"/y
const closings = { "{": /\}/y, "[": /\]/y } as const
/** A string without its closing quote. */
const characters = /"(?:[ !#-[\]-\uffff]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y
const scalar = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/** The index of the first invalid character; the text's length if it ends too early. */
export const syntaxFaultAt = (text: string): number => {
  let at = 0

  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    const found = pattern.test(text)
    if (found) at = pattern.lastIndex
    return found
  }
  const string = () => take(characters) && take(quote)
  const takeSpaced = (token: () => boolean): boolean => {
    skip()
    return token() && skip()
  }
  const skip = () => take(whitespace)
  const member = (): boolean => takeSpaced(string) && take(colon) && value()
  const list = (open: "{" | "[", item: () => boolean): boolean => {
    at++
    skip()
    if (take(closings[open])) return true
    do if (!item()) return false
    while (take(comma))
    return take(closings[open])
  }
  const value = (): boolean =>
    takeSpaced(() => {
      const first = text[at]
      if (first === "{") return list(first, member)
      if (first === "[") return list(first, value)
      return first === '"' ? string() : take(scalar)
    })

  value()
  return at
}
