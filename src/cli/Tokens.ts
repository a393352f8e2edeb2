/** The command that creates API tokens: an operator who has lost all tokens regains access with it. */
import { Console, Effect, Layer, Schema } from "effect"
import { Flag } from "effect/cli"
import { Name } from "../api/Text.ts"
import { ApiKeyCache } from "../auth/apiKeys/ApiKeyCache.ts"
import { ApiKeys } from "../auth/apiKeys/ApiKeys.ts"
import { ManagementScope } from "../auth/Scope.ts"
import { EventLog } from "../events/EventLog.ts"

const isScope = Schema.is(ManagementScope)

const Scopes = Schema.String.check(
  Schema.makeFilter(
    (text) =>
      text.split(",").every((scope) => isScope(scope)) || `Expected some of ${ManagementScope.literals.join(",")}`
  )
)

export const tokenFlags = {
  name: Flag.String("name").pipe(Flag.withDescription("The key's name."), Flag.withSchema(Name)),
  scopes: Flag.String("scopes").pipe(
    Flag.withDescription("The key's scopes, separated by commas; admin allows everything."),
    Flag.withDefault("admin"),
    Flag.withSchema(Scopes)
  )
}

/** Creates an API key. Standard output contains only its token. */
export const createToken = Effect.fnUntraced(
  function* ({ name, scopes }: { readonly name: string; readonly scopes: string }) {
    const keys = yield* ApiKeys
    const { api_key, token } = yield* keys.create({ name, scopes: scopes.split(",").filter(isScope) })
    yield* Console.log(token)
    yield* Console.error(`The API key ${api_key.id} may do: ${api_key.scopes.join(", ")}. Its token is shown only now.`)
  },
  Effect.provide(ApiKeys.layer.pipe(Layer.provide([ApiKeyCache.layer, EventLog.layer])))
)
