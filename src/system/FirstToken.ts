/**
 * The admin token of a service that starts without any API key. A generated token is shown to the operator once, by `Announcement`,
 * and stored nowhere.
 */
import { Context, Effect, Layer, Option, type Redacted } from "effect"
import { ApiKeys } from "../auth/apiKeys/ApiKeys.ts"
import { Settings } from "../config/Config.ts"

export class FirstToken extends Context.Service<
  FirstToken,
  {
    /** None if there was an API key already, or the operator has chosen the token. */
    readonly generated: Option.Option<Redacted.Redacted<string>>
  }
>()("licensing/system/FirstToken") {
  static readonly layer = Layer.effect(
    FirstToken,
    Effect.gen(function* () {
      const { bootstrapToken } = yield* Settings
      const token = yield* (yield* ApiKeys).bootstrap(bootstrapToken)
      return FirstToken.of({ generated: bootstrapToken === undefined ? token : Option.none() })
    })
  )
}
