/** A number of runs from the environment. One that is not at least 1 would let tests pass that do nothing. */
export const countOf = (variable: string, byDefault: number): number => {
  const count = Number(process.env[variable] ?? byDefault)
  if (Number.isInteger(count) && count >= 1) return count
  throw new Error(`Set ${variable} to a whole number from 1 on.`)
}
