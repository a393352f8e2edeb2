/** Nothing that a person has begun is sent with the token of who signs in next. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayer, type Person, withPerson } from "../browser/Browser.ts"
import { forgive } from "../browser/Meanwhile.ts"
import {
  adminKey,
  changesWith,
  prepareRefused,
  type RefusedChange,
  refuseChange,
  refusedChanges,
  signsIn
} from "../browser/Refused.ts"

const minutes = 5 * 60_000

/** So often each change is refused in one tab, with another person each time. `SIGN_INS=4` tries more. */
const rounds = Number(process.env["SIGN_INS"] ?? 1)

/** The service refuses the given one of the requests that the change sends, and all after it. */
const refusesAndSignsIn = Effect.fnUntraced(function* (person: Person, change: RefusedChange, nth = 1) {
  const { adminToken } = yield* TestServer
  const of = yield* prepareRefused()
  const key = yield* adminKey()
  const sent = changesWith(person, adminToken)
  yield* Effect.promise(async () => {
    await person.page.goto(`${person.home}${change.path(of)}`)
    await person.seesHeading("Licensing console")
    await signsIn(person, key.token)
    await person.seesHeading(change.heading(of))
    await person.isLoaded()
    const isRefused = await refuseChange(person, key.revoke, nth)
    await change.act(person, of)
    await isRefused()
    await signsIn(person, adminToken)
    await person.seesHeading(change.heading(of))
    await person.isLoaded()
    await person.page.clock.runFor(60_000)
    await person.click("Products", "link")
    await person.seesHeading("Products")
    await person.isLoaded()
    assert.deepStrictEqual(sent, [], change.what)
    assert.strictEqual(await person.page.locator("dialog[open]").count(), 0)
    forgive(person)
  })
})

layer(consoleLayer, { timeout: minutes })("Who signs in next", (it) => {
  for (const change of refusedChanges)
    it.effect(
      `sends nothing of somebody else: ${change.what}`,
      ({ skip }) =>
        Effect.gen(function* () {
          const context = yield* Effect.context<TestServer>()
          const run = Effect.runPromiseWith(context)
          yield* withPerson(
            skip,
            async (person) => {
              await person.page.clock.install()
              for (let round = 0; round < rounds; round++) {
                const nth = change.what.startsWith("undoing") ? 2 : 1
                await run(refusesAndSignsIn(person, change, nth))
              }
            },
            { token: "", movesClock: true }
          )
        }),
      minutes
    )
})
