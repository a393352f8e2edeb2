/**
 * The admin token of a service that starts without any API key. A generated token is shown to the operator by `Announcement` at
 * each start until an API key has been used.
 */
import { Context, Effect, Layer, type Option, type Redacted } from "effect"
import { Settings } from "../../platform/config/Config.ts"
import { ApiKeys } from "../../vendor/apiKeys/ApiKeys.ts"

export class FirstToken extends Context.Service<
  FirstToken,
  {
    /** The token to show; none if an API key has been used, or the operator chose the token. */
    readonly unused: Option.Option<Redacted.Redacted<string>>
  }
>()("licensing/edge/system/FirstToken") {
  static readonly layer = Layer.effect(
    FirstToken,
    Effect.gen(function* () {
      const { bootstrapToken } = yield* Settings
      return FirstToken.of({ unused: yield* (yield* ApiKeys).bootstrap(bootstrapToken) })
    })
  )
}
