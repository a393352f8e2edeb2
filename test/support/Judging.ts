/** The service's half of OIDC, without a server around it. */
import { Context, Effect, Layer } from "effect"
import { Oidc } from "../../src/auth/oidc/Oidc.ts"
import { Settings } from "../../src/config/Config.ts"
import { audience, Issuer } from "./Issuer.ts"

/** With a memory of its own. */
export const makeOidc = Effect.fnUntraced(function* (scopeClaim = "scope") {
  const { url } = yield* Issuer
  const settings = Settings.layerTest({ oidcIssuer: url, oidcAudience: audience, oidcScopeClaim: scopeClaim })
  return Context.get(yield* Layer.build(Layer.fresh(Oidc.layer).pipe(Layer.provide(settings))), Oidc)
})

/** Whom a token stands for with which scopes, or the code that it is refused with. */
export const verdict = (oidc: Oidc["Service"], token: string) =>
  Effect.match(oidc.authenticate(token), {
    onSuccess: ({ actor, scopes }) => [actor.actor_type, actor.actor_id, ...scopes],
    onFailure: ({ code }) => code
  })

/** The verdict on whom the issuer's own tokens stand for, unless they say otherwise. */
export const someone = ["oidc_subject", "someone", "admin"]
