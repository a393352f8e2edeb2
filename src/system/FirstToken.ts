/**
 * The admin token that a service without any API key starts with. A token that was made here is shown to the operator once, by
 * whoever starts the service, and is nowhere else.
 */
import { Context, Effect, Layer, Option, type Redacted } from "effect"
import { ApiKeys } from "../auth/apiKeys/ApiKeys.ts"
import { Settings } from "../config/Config.ts"

export class FirstToken extends Context.Service<
  FirstToken,
  {
    /** None where there was an API key already, or the operator has chosen the token. */
    readonly made: Option.Option<Redacted.Redacted<string>>
  }
>()("licensing/system/FirstToken") {
  static readonly layer = Layer.effect(
    FirstToken,
    Effect.gen(function* () {
      const { bootstrapToken } = yield* Settings
      const token = yield* (yield* ApiKeys).bootstrap(bootstrapToken)
      return FirstToken.of({ made: bootstrapToken === undefined ? token : Option.none() })
    })
  )
}
