/** `npm run tour` on a service whose clock runs ahead (LICENSING_CLOCK_OFFSET_SECONDS). */
import { execFile } from "node:child_process"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../support/http/TestServer.ts"
import { processEnvironment } from "../support/processes/Processes.ts"

const tour = (url: string, token: string) =>
  Effect.callback<{ readonly failed: boolean; readonly output: string }>((resume) => {
    const env = { ...processEnvironment, LICENSING_URL: url, LICENSING_TOKEN: token }
    execFile(process.execPath, ["infra/scripts/tour.ts"], { env }, (error, out, errors) =>
      resume(Effect.succeed({ failed: error !== null, output: out.slice(-2000) + errors }))
    )
  })

layer(TestServer.layer, { timeout: 60_000 })("The tour", (it) => {
  it.effect("judges times by the clock of the service, also two years ahead", () =>
    Effect.gen(function* () {
      const { adminToken, advance, baseUrl } = yield* TestServer
      for (const days of [30, 700]) {
        yield* advance(days * 86_400)
        const { failed, output } = yield* tour(baseUrl, adminToken)
        assert.isFalse(failed, output)
        assert.match(output, /All \d+ steps succeeded/)
      }
    })
  )
})
