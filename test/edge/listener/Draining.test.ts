import { createServer } from "node:http"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { drain } from "../../../src/edge/listener/Draining.ts"

it.live("a drained server leaves no timer, which would keep the server and its whole service in memory", () =>
  Effect.gen(function* () {
    const server = createServer()
    yield* Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void)))
    const [symbol] = Object.getOwnPropertySymbols(server).filter(({ description = "" }) =>
      /Interval$/.test(description)
    )
    const timer = Reflect.get(server, symbol!) as { readonly _destroyed: boolean }
    assert.isFalse(timer._destroyed)
    yield* drain({ server, open: new Set(), seconds: 1, keepsIdle: false })
    assert.isTrue(timer._destroyed)
  })
)
