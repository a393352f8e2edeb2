/** The console of a service that has nothing yet: each screen says so, and fails nowhere. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { consoleLayer, withPerson } from "../browser/Browser.ts"

const minutes = 5 * 60_000

const screens = [
  ["", "Overview", "Nothing in this period."],
  ["/reports", "Usage", "Nothing was used in this period."],
  ["/reports/ledger", "Ledger", "No change of a counter matches."],
  ["/reports/exports", "Exports", "No report has been exported yet."],
  ["/activity?action=license.create", "Activity", "Nothing matches."],
  ["/activity?feed=events&event_type=license.created", "Activity", "Nothing matches."],
  ["/bulk-jobs", "Bulk jobs", "No bulk jobs yet"],
  ["/operations", "Operations", "There is no webhook yet."]
] as const

layer(consoleLayer, { timeout: minutes })("The console of an empty service", (it) => {
  it.effect(
    "says on each screen that nothing is there, and axe finds nothing",
    ({ skip }) =>
      Effect.gen(function* () {
        yield* withPerson(skip, async (person) => {
          for (const [path, heading, text] of screens) {
            await person.opens(path, heading)
            await person.sees(text)
            assert.deepStrictEqual(await person.violations(), [])
          }
        })
      }),
    minutes
  )
})
