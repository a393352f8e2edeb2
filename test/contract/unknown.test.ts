/** What no operation knows is refused by its name: a misspelt filter must not list everything, a misspelt field not be lost. */
import { layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertRefused } from "../support/Envelopes.ts"
import { Conversation } from "./Conversation.ts"
import { Fixtures, layerContract, requestOf } from "./Fixtures.ts"
import { operations } from "./Surface.ts"

/** Queries with the name that is refused. */
const unknown: ReadonlyArray<readonly [query: string, name: string]> = [
  ["colour=red", "colour"],
  ["colour", "colour"],
  ["&&=", ""],
  ["__proto__=1&constructor=2", "__proto__"],
  ["LIMIT=1", "LIMIT"]
]

layer(layerContract, { timeout: "1 minute" })("An unknown query parameter", (it) => {
  it.effect("of any GET is refused", () =>
    Effect.gen(function* () {
      const { ask } = yield* Conversation
      const fixture = yield* (yield* Fixtures).make
      for (const operation of operations.filter(({ method }) => method === "GET")) {
        const right = requestOf(operation, fixture)
        for (const [text, name] of unknown) {
          const answer = yield* ask(operation, { ...right, query: `${right.query}&${text}` })
          assertRefused(answer, 400, "INVALID_QUERY", name)
        }
      }
    })
  )
})
