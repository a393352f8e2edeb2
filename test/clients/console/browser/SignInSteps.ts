/** A console with an OIDC provider, and how a person signs in there. */
import { Effect, Layer } from "effect"
import { audience } from "../../../support/http/Authentication.ts"
import { TestServer } from "../../../support/http/TestServer.ts"
import { consoleLayerWith, type Person } from "./Browser.ts"
import { clientId, Provider } from "./Provider.ts"

export const signInLayer = Layer.unwrap(
  Provider.useSync(({ url }) =>
    consoleLayerWith({
      oidcIssuer: url,
      oidcAudience: audience,
      oidcScopeClaim: "roles",
      consoleClientId: clientId,
      consoleParameters: [["resource", audience]]
    })
  )
).pipe(Layer.provideMerge(Provider.layer))

export const signIn = async (person: Person, name: string) => {
  await person.click(/^Sign in at localhost/)
  await person.click(`Sign in as ${name}`, "link")
}

export const admit = Effect.fnUntraced(function* (options: Parameters<Provider["Service"]["admit"]>[1] = {}) {
  const { admit } = yield* Provider
  yield* admit(`${(yield* TestServer).baseUrl}/console`, options)
})
