/** Starts trials: the one runtime operation without a license key. Its signed response is the only place where the key appears. */
import { Context, Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { isRefusal, type Refusal, refuse } from "../api/Failure.ts"
import { currentMeta } from "../api/Meta.ts"
import { RequestContext } from "../api/RequestContext.ts"
import { RateLimits } from "../auth/rateLimits/RateLimits.ts"
import { PublicTrials } from "../licenses/trials/PublicTrials.ts"
import { payloadOf, signedEnvelope } from "../signing/SignedAnswers.ts"
import { Signer } from "../signing/Signer.ts"
import { bindingOf } from "./Bindings.ts"
import type { TrialRequest } from "./Requests.ts"

type StartRefusal =
  | Effect.Error<ReturnType<PublicTrials["Service"]["start"]>>
  | Refusal<"RATE_LIMITED" | "VALIDATION_ERROR">

export class Trials extends Context.Service<
  Trials,
  {
    start(request: TrialRequest): Effect.Effect<HttpServerResponse.HttpServerResponse, StartRefusal>
  }
>()("licensing/runtime/Trials") {
  static readonly layer = Layer.effect(
    Trials,
    Effect.gen(function* () {
      const limits = yield* RateLimits
      const signer = yield* Signer
      const trials = yield* PublicTrials

      const start = Effect.fn("Trials.start")(function* ({ binding: machine, nonce, ...codes }: TrialRequest) {
        yield* limits.trial
        const { clientAddress } = yield* RequestContext
        const binding = bindingOf(machine, clientAddress)
        if (isRefusal(binding)) return yield* withinBinding(binding)
        const { entitlement, license_key } = yield* trials.start({ ...codes, binding })
        const signed = yield* signer.sign(payloadOf({ ...entitlement, license_key }, nonce))
        const text = signedEnvelope("data", signed, yield* currentMeta)
        return HttpServerResponse.text(text, { contentType: "application/json" })
      })
      return Trials.of({ start })
    })
  ).pipe(Layer.provide(PublicTrials.layer))
}

/** The missing field of a binding, by its path in the body. */
const withinBinding = ({ code, detail, message }: Refusal<"VALIDATION_ERROR">) =>
  refuse(code, message, `binding.${detail}`)
