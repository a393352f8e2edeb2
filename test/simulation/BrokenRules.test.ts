/** The rules that `npm run simulate -- --broken` breaks are still in the source. */
import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { brokenRules, brokenText } from "./BrokenRules.ts"

it.each(Object.entries(brokenRules))("%s is a rule of the service", (_, rule) => {
  const text = readFileSync(rule.file, "utf8")
  assert.notStrictEqual(brokenText(rule, text), text)
})
