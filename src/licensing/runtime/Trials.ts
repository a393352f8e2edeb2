/** Starts trials: the only runtime operation without a license key. Only its signed response contains the key. */
import { Context, Effect, Layer } from "effect"
import type { HttpServerResponse } from "effect/http"
import { RateLimits } from "../../access/rateLimits/RateLimits.ts"
import { isRefusal, type Refusal, refuse } from "../../contract/api/Failure.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { payloadOf } from "../../platform/signing/SignedAnswers.ts"
import { Signer } from "../../platform/signing/Signer.ts"
import { TrialLimit } from "./Api.ts"
import { bindingOf } from "./Bindings.ts"
import { responseOf } from "./credentials/RuntimeProtocol.ts"
import { PublicTrials } from "./PublicTrials.ts"
import type { TrialRequest } from "./RuntimeRequests.ts"

type StartRefusal = Effect.Error<ReturnType<PublicTrials["Service"]["start"]>> | Refusal<"VALIDATION_ERROR">

export class Trials extends Context.Service<
  Trials,
  { start(request: TrialRequest): Effect.Effect<HttpServerResponse.HttpServerResponse, StartRefusal> }
>()("licensing/licensing/runtime/Trials") {
  static readonly layer = Layer.effect(
    Trials,
    Effect.gen(function* () {
      const signer = yield* Signer
      const trials = yield* PublicTrials

      const start = Effect.fn("Trials.start")(function* ({ binding: machine, nonce, ...codes }: TrialRequest) {
        const { clientAddress } = yield* RequestContext
        const binding = bindingOf(machine, clientAddress)
        if (isRefusal(binding)) return yield* withinBinding(binding)
        const { entitlement, license_key } = yield* trials.start({ ...codes, binding })
        return yield* responseOf(yield* signer.sign(payloadOf({ ...entitlement, license_key }, nonce)))
      })
      return Trials.of({ start })
    })
  ).pipe(Layer.provide(PublicTrials.layer))
}

export const trialLimit = Layer.effect(
  TrialLimit,
  RateLimits.useSync(
    ({ trial }) =>
      (handler) =>
        Effect.andThen(trial, handler)
  )
)

/** Names the missing field of a binding by its path in the body. */
const withinBinding = ({ code, detail, message }: Refusal<"VALIDATION_ERROR">) =>
  refuse(code, message, `binding.${detail}`)
