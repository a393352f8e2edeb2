/**
 * The runtime operations on the framework path: a request becomes a command for the license's actor, the result is
 * signed, and the signed bytes are sent unchanged.
 */
import { Context, Effect, identity, Layer } from "effect"
import type { HttpServerResponse } from "effect/http"
import { RateLimits } from "../../access/rateLimits/RateLimits.ts"
import type { Code } from "../../contract/api/ErrorCode.ts"
import type { Refusal } from "../../contract/api/Failure.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { resumeDeadline } from "../../platform/postgres/driver/Deadline.ts"
import { payloadOf } from "../../platform/signing/SignedAnswers.ts"
import { awaitSignature, type PendingSignature, Signer } from "../../platform/signing/Signer.ts"
import { LicenseActors } from "../engine/LicenseActors.ts"
import type { Rule } from "../rules/LicenseCommand.ts"
import { unknownKey } from "./credentials/RuntimeAuthorization.ts"
import { responseOf } from "./credentials/RuntimeProtocol.ts"
import { OfflineEnvelope } from "./OfflineEnvelope.ts"
import { makeOwnDevices } from "./OwnDeviceList.ts"
import { type Credential, makeOperations, type Operation } from "./RuntimeOperations.ts"
import type { RuntimeRequest } from "./RuntimeRequests.ts"

type Response<C extends Code> = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  Refusal<Exclude<C, "NOT_FOUND">> | Refusal<"LICENSE_KEY_INVALID" | "NOT_READY" | "RATE_LIMITED" | "VALIDATION_ERROR">
>
type Operations = Effect.Success<typeof makeOperations>
type OperationMethod<O> = O extends {
  readonly rule: Rule<never, unknown, infer C>
  readonly commandOf: (credential: Credential, request: infer Request, context: RequestContext) => unknown
}
  ? (credential: Credential, request: Request) => Response<C>
  : never

export class Runtime extends Context.Service<
  Runtime,
  { readonly [Name in keyof Operations]: OperationMethod<Operations[Name]> }
>()("licensing/licensing/runtime/Runtime") {
  static readonly layer = Layer.effect(
    Runtime,
    Effect.gen(function* () {
      const actors = yield* LicenseActors
      const signer = yield* Signer
      const envelope = yield* OfflineEnvelope
      const limits = yield* RateLimits

      const respond = (signing: PendingSignature) =>
        Effect.flatMap(awaitSignature(signing), (signed) => responseOf(signed))
      /** Signs while the change is being committed; the response is sent only after the commit. */
      const beginWith =
        ({ nonce }: RuntimeRequest) =>
        (payload: unknown) =>
          signer.begin(payloadOf(payload, nonce))

      const methodOf = <Request extends RuntimeRequest, Command, Payload, C extends Code>(
        { rule, commandOf, onSuccess }: Operation<Request, Command, Payload, C>,
        ask = (credential: Credential, command: Command, request: Request): ActorResponse<C> =>
          actors.askWith(credential.licenseId, rule, command, beginWith(request), respond, request)
      ) => {
        const afterSuccess = (credential: Credential) => (response: HttpServerResponse.HttpServerResponse) => {
          onSuccess?.(credential)
          return response
        }
        return (credential: Credential, request: Request): Response<C> =>
          Effect.withFiber((fiber) => {
            const prepared = commandOf(credential, request, fiber.getRef(RequestContext))
            const response = Effect.flatMap(prepared, (command) => asRuntime(ask(credential, command, request)))
            return onSuccess === undefined ? response : Effect.map(response, afterSuccess(credential))
          })
      }

      const { offline, ownDevices, ...others } = yield* makeOperations
      const listDevices = yield* makeOwnDevices
      const listOwn = methodOf(ownDevices, ({ licenseId }, command, { cursor, limit, nonce }) =>
        actors.askWith(licenseId, ownDevices.rule, command, identity, (facts) =>
          Effect.andThen(
            resumeDeadline,
            listDevices(licenseId, { ...(cursor && { cursor }), ...(limit && { limit }) })
          ).pipe(Effect.flatMap((listed) => respond(signer.begin(payloadOf({ ...facts, ...listed }, nonce)))))
        )
      )
      const issueOffline = methodOf(offline, (credential, command, { nonce }) => {
        // The request's nonce is part of the payload: the envelope's `nonce` is that of the encryption.
        const seal = (payload: object) =>
          Effect.flatMap(envelope.seal(credential.licenseKey(), payloadOf(payload, nonce)), (sealed) =>
            respond(signer.begin(sealed))
          )
        const answer = actors.askWith(credential.licenseId, offline.rule, command, identity, seal)
        return command.activation === undefined
          ? answer
          : Effect.andThen(limits.activation(credential.licenseId), answer)
      })
      const { activate, validate, check, consume, deactivate, checkout, heartbeat, checkin, deactivateOwn } = others
      return Runtime.of({
        activate: methodOf(activate),
        validate: methodOf(validate),
        check: methodOf(check),
        consume: methodOf(consume),
        deactivate: methodOf(deactivate),
        offline: issueOffline,
        checkout: methodOf(checkout),
        heartbeat: methodOf(heartbeat),
        checkin: methodOf(checkin),
        ownDevices: listOwn,
        // Rare, so it is not handed over to the license's owner.
        deactivateOwn: methodOf(deactivateOwn, ({ licenseId }, command, request) =>
          actors.askWith(licenseId, deactivateOwn.rule, command, beginWith(request), respond)
        )
      })
    })
  ).pipe(Layer.provide(OfflineEnvelope.layer))
}

type ActorResponse<C extends Code> = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  Refusal<C> | Refusal<"NOT_FOUND" | "NOT_READY" | "RATE_LIMITED">
>

/** The key of a deleted license is unknown, so NOT_FOUND becomes LICENSE_KEY_INVALID. */
const asRuntime = <C extends Code>(response: ActorResponse<C>): Response<C> =>
  Effect.mapError(response, (refusal) => (isFound<C>(refusal) ? refusal : unknownKey))

const isFound = <C extends Code>(refusal: Refusal): refusal is Refusal<Exclude<C, "NOT_FOUND">> =>
  refusal.code !== "NOT_FOUND"
