/** What stands in for `@effect/vitest` in the run of a mutant: tests are collected, and run by `runner.mjs`. */
export { assert } from "vitest"

/** All tests of the loaded files: their full names and functions. */
export const tests = []

const names = []

export const describe = (name, define) => {
  names.push(name)
  define()
  names.pop()
}

export const it = (name, run) => {
  tests.push({ name: [...names, name].join(" "), run })
}

for (const suite of [describe, it])
  suite.each = (table) => (name, run) => {
    for (const [index, row] of table.entries())
      suite(`${name} (${index})`, () => (Array.isArray(row) ? run(...row) : run(row)))
  }
