/** Several instances of the service on one database, each with a memory and a clock of its own. */
import { Context, Effect, Layer } from "effect"
import { KeyRing } from "../../src/signing/KeyRing.ts"
import { TestServer } from "./TestServer.ts"

/** Starts one more instance, which lives as long as the scope. */
export const startServer = Effect.fnUntraced(function* (settings: Parameters<typeof TestServer.layerOver>[0] = {}) {
  const context = yield* Layer.build(Layer.fresh(TestServer.layerOver(settings)))
  return { ...Context.get(context, TestServer), keyRing: Context.get(context, KeyRing) }
})
