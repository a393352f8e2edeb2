/**
 * The runtime operations: a request becomes a command to the license's actor, its payload is signed, and the signed bytes
 * are sent as they are. An answer is written once and never serialised again.
 */
import { Context, Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import type { Json } from "../api/CanonicalJson.ts"
import { type Code, isRefusal, type Refusal, refuse } from "../api/Failure.ts"
import { Identifiers } from "../api/Identifier.ts"
import { currentMeta } from "../api/Meta.ts"
import { RequestContext } from "../api/RequestContext.ts"
import type { LicenseCredential } from "../auth/Runtime.ts"
import * as Activation from "../licenses/Activation.ts"
import type { RuntimeCommand } from "../licenses/Admission.ts"
import { consume } from "../licenses/Consumption.ts"
import { LicenseActors } from "../licenses/LicenseActors.ts"
import type { Rule } from "../licenses/LicenseCommand.ts"
import { Signer } from "../signing/Signer.ts"
import { bindingOf } from "./Bindings.ts"
import type { BindingRequest, ConsumeRequest } from "./Requests.ts"

type Credential = LicenseCredential["Service"]
type Answer<C extends Code> = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  Refusal<Exclude<C, "NOT_FOUND"> | "LICENSE_KEY_INVALID" | "NOT_READY" | "VALIDATION_ERROR">
>
type CodeOf<R> = R extends Rule<never, unknown, infer C> ? C : never

export class Runtime extends Context.Service<
  Runtime,
  {
    activate(credential: Credential, request: BindingRequest): Answer<CodeOf<typeof Activation.activate>>
    validate(credential: Credential, request: BindingRequest): Answer<CodeOf<typeof Activation.validate>>
    check(credential: Credential, request: BindingRequest): Answer<CodeOf<typeof Activation.check>>
    consume(credential: Credential, request: ConsumeRequest): Answer<CodeOf<typeof consume>>
    deactivate(credential: Credential, request: BindingRequest): Answer<CodeOf<typeof Activation.deactivate>>
  }
>()("licensing/runtime/Runtime") {
  static readonly layer = Layer.effect(
    Runtime,
    Effect.gen(function* () {
      const actors = yield* LicenseActors
      const signer = yield* Signer
      const ids = yield* Identifiers

      const commandOf = Effect.fnUntraced(function* (credential: Credential, request: BindingRequest) {
        const { clientAddress } = yield* RequestContext
        const binding = yield* bindingOf(request, clientAddress)
        return { keyHash: credential.keyHash, binding }
      })

      /** `{data, signature, meta}` with the very bytes that were signed. */
      const signed = Effect.fnUntraced(function* (payload: Json) {
        const { bytes, signature } = yield* signer.signData(payload)
        const meta = yield* currentMeta
        return HttpServerResponse.text(
          `{"data":${bytes},"signature":${JSON.stringify(signature)},"meta":${JSON.stringify(meta)}}`,
          { contentType: "application/json" }
        )
      })

      const ask = <Command extends RuntimeCommand, Payload, C extends Code>(
        rule: Rule<Command, Payload, C>,
        credential: Credential,
        command: Command
      ): Answer<C> =>
        Effect.mapError(
          actors.ask(credential.licenseId, rule, command, (payload) => signed(payload as Json)),
          (refusal) => (isRefusal(refusal) && refusal.code === "NOT_FOUND" ? unknownKey : refusal)
        ) as Answer<C>

      return Runtime.of({
        activate: Effect.fn("Runtime.activate")(function* (credential, request) {
          const command = yield* commandOf(credential, request)
          return yield* ask(Activation.activate, credential, { ...command, newDeviceId: yield* ids.make("device") })
        }),
        validate: Effect.fn("Runtime.validate")(function* (credential, request) {
          return yield* ask(Activation.validate, credential, yield* commandOf(credential, request))
        }),
        check: Effect.fn("Runtime.check")(function* (credential, request) {
          return yield* ask(Activation.check, credential, yield* commandOf(credential, request))
        }),
        consume: Effect.fn("Runtime.consume")(function* (credential, request) {
          const { feature_code, event_id, amount = 1 } = request
          return yield* ask(consume, credential, {
            ...(yield* commandOf(credential, request)),
            feature_code,
            event_id,
            amount
          })
        }),
        deactivate: Effect.fn("Runtime.deactivate")(function* (credential, request) {
          return yield* ask(Activation.deactivate, credential, yield* commandOf(credential, request))
        })
      })
    })
  )
}

const unknownKey = refuse("LICENSE_KEY_INVALID", "The license key is not valid: check it for typing errors.")
