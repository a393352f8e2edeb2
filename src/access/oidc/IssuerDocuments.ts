/**
 * Fetches an OIDC issuer's documents. What must stay true: the discovery document names the configured issuer, and all its addresses
 * are https (or http on this machine); redirects are not followed; size and time are limited.
 */
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { issuerAddress } from "../../platform/config/Setting.ts"

export class IssuerUnreachable extends Schema.TaggedError<IssuerUnreachable>()("IssuerUnreachable", {
  message: Schema.String
}) {}

const documentBytesMax = 262_144
/** The time limit for all documents of one fetch. */
export const issuerTimeout = "5 seconds"

const Discovery = Schema.Struct({
  issuer: Schema.String,
  jwks_uri: Schema.String,
  authorization_endpoint: Schema.optionalKey(Schema.String),
  token_endpoint: Schema.optionalKey(Schema.String),
  end_session_endpoint: Schema.optionalKey(Schema.String),
  authorization_response_iss_parameter_supported: Schema.optionalKey(Schema.Boolean),
  id_token_signing_alg_values_supported: Schema.optionalKey(Schema.Array(Schema.String))
})

export const makeIssuerDocuments = Effect.fnUntraced(function* (issuer: string) {
  const client = Context.get(yield* Layer.build(httpClient), HttpClient.HttpClient)

  const json = Effect.fnUntraced(function* (url: string) {
    const { stream } = yield* client.get(url)
    const chunks: Array<Uint8Array> = []
    let length = 0
    yield* Stream.runForEach(stream, (chunk) => {
      chunks.push(chunk)
      length += chunk.length
      return length <= documentBytesMax
        ? Effect.void
        : Effect.fail(new IssuerUnreachable({ message: `${url} is larger than ${documentBytesMax} bytes.` }))
    })
    return yield* Effect.try({
      try: (): unknown => JSON.parse(Buffer.concat(chunks).toString()),
      catch: () => new IssuerUnreachable({ message: `${url} is not JSON.` })
    })
  })

  const discovery = Effect.gen(function* () {
    const document = yield* json(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`)
    const found = yield* Schema.decodeUnknownEffect(Discovery)(document)
    const places = [found.jwks_uri, found.authorization_endpoint, found.token_endpoint, found.end_session_endpoint]
    if (found.issuer !== issuer || !places.every(isSafe)) {
      return yield* new IssuerUnreachable({
        message: `The discovery document of ${issuer} names another issuer, or an address that is not https.`
      })
    }
    return found
  })
  return { discovery, json }
})

const isSafe = (place: string | undefined) =>
  place === undefined || issuerAddress(place.split("?", 1)[0]!) !== undefined

const httpClient = Layer.effect(
  HttpClient.HttpClient,
  Effect.map(HttpClient.HttpClient, HttpClient.filterStatusOk)
).pipe(
  Layer.provide(FetchHttpClient.layer),
  Layer.provide(Layer.succeed(FetchHttpClient.RequestInit, { redirect: "error" }))
)
