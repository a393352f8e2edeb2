/** The facts about the OIDC issuer that the console needs for signing in. They are public and contain no secret. */
import { Schema } from "effect"

const SignInProvider = Schema.Struct({
  client_id: Schema.String,
  scope: Schema.String,
  /** Further parameters of the authorization request. */
  parameters: Schema.Array(Schema.Tuple([Schema.String, Schema.String])),
  authorization_endpoint: Schema.String,
  token_endpoint: Schema.String,
  end_session_endpoint: Schema.optionalKey(Schema.String),
  authorization_response_iss_parameter_supported: Schema.optionalKey(Schema.Boolean),
  id_token_signing_alg_values_supported: Schema.optionalKey(Schema.Array(Schema.String))
})
export type SignInProvider = typeof SignInProvider.Type

/** Without an issuer, users sign in with API tokens only. Without a provider, the issuer cannot be reached at the moment. */
export const SignInWays = Schema.Struct({
  issuer: Schema.optionalKey(Schema.String),
  provider: Schema.optionalKey(SignInProvider)
})
export type SignInWays = typeof SignInWays.Type
