/** The nearest of some names, for a name that may be misspelled. */

/** Characters that are compared: the time grows with their square. */
const comparedMax = 64

/** The name with the fewest changes of characters; none if half of it would change. */
export const nearest = (given: string, names: ReadonlyArray<string>): string | undefined => {
  const text = given.slice(0, comparedMax).replaceAll(/\W+/g, "_")
  const [best] = names.map((name) => ({ name, distance: distance(text, name) })).sort((a, b) => a.distance - b.distance)
  return best !== undefined && best.distance <= best.name.length / 2 ? best.name : undefined
}

const distance = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [at, character] of [...from].entries()) {
    const next = [at + 1]
    for (let index = 0; index < to.length; index++) {
      next.push(Math.min(row[index + 1]! + 1, next[index]! + 1, row[index]! + (character === to[index] ? 0 : 1)))
    }
    row = next
  }
  return row[to.length]!
}
