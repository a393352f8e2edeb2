/** Test files of one worker share fixtures: each build of a server must have its own clock. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "./TestServer.ts"

for (const build of ["first", "second"]) {
  layer(TestServer.layer, { timeout: 60_000 })(`The ${build} build of a test server`, (it) => {
    it.effect("starts at the machine's time", () =>
      Effect.gen(function* () {
        const { advance, send } = yield* TestServer
        const { json } = yield* send({ path: "/health" })
        const { meta } = json as { readonly meta: { readonly timestamp: string } }
        assert.isAtMost(Date.parse(meta.timestamp), Date.now())
        yield* advance(3_600)
      })
    )
  })
}
