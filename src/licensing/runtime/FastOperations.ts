/**
 * The runtime operations on the fast path: a cached key, a valid body, and a command for the license's actor.
 * The framework path handles all other cases.
 */
import { Cause, Clock, Effect, Exit, Option } from "effect"
import type { HttpApiEndpoint } from "effect/http-api"
import { Api } from "../../Api.ts"
import { RateLimits } from "../../access/rateLimits/RateLimits.ts"
import { invalid } from "../../access/requests/BodyDecoder.ts"
import { bodyDecoder } from "../../access/requests/RequestBody.ts"
import type { Code } from "../../contract/api/ErrorCode.ts"
import type { Refusal } from "../../contract/api/Failure.ts"
import { metaOf } from "../../contract/api/Meta.ts"
import { RequestContext } from "../../contract/api/RequestContext.ts"
import { payloadOf, signedEnvelope, signedErrorOf } from "../../platform/signing/SignedAnswers.ts"
import { type Signed, Signer } from "../../platform/signing/Signer.ts"
import { LicenseActors } from "../engine/LicenseActors.ts"
import { pendingCommand } from "../engine/PendingCommand.ts"
import { LicenseIdCache } from "./credentials/LicenseIdCache.ts"
import { presentedKey } from "./credentials/PresentedKey.ts"
import { admissionOf, forgetKey, treatmentOf } from "./credentials/RuntimeProtocol.ts"
import type { AdmittedRequest, Body, FastOperation, Outcome, StartedOperation } from "./FastOperation.ts"
import { type Credential, makeOperations, type Operation } from "./RuntimeOperations.ts"
import type { RuntimeRequest } from "./RuntimeRequests.ts"

/** The operations by path. */
export const makeFastOperations = Effect.gen(function* () {
  const actors = yield* LicenseActors
  const licenseIds = yield* LicenseIdCache
  const limits = yield* RateLimits
  const signer = yield* Signer
  const clock = yield* Clock.Clock

  const bodyOf = (signed: Signed, requestId: string, refused?: Refusal): Body => {
    const text = signedEnvelope(signed, metaOf(requestId, clock.currentTimeMillisUnsafe()), refused)
    // The envelope around the signed text is ASCII: one byte per character.
    const length = text.length + Buffer.byteLength(signed.bytes) - signed.bytes.length
    return refused === undefined ? { text, bytes: length } : { text, bytes: length, refused }
  }

  const fastOperationOf = <Request extends RuntimeRequest, Command, Payload, C extends Code>(
    endpoint: HttpApiEndpoint.Top,
    { onSuccess, commandOf, rule }: Operation<Request, Command, Payload, C>
  ): FastOperation => {
    const admission = admissionOf(endpoint, limits)
    const requestOf = decoder<Request>(endpoint)

    const refuse = (
      credential: Credential,
      { nonce }: Request,
      context: RequestContext,
      refusal: Refusal,
      respond: Respond
    ): void => {
      const { facts } = refusal
      const treatment = treatmentOf(refusal)
      if (treatment === "forgetKey") {
        respond(Effect.provideService(forgetKey(licenseIds, credential.keyHash), RequestContext, context))
      } else if (treatment === "sign" && facts !== undefined) {
        signer.begin(signedErrorOf(refusal, facts, nonce))((exit) =>
          respond(Exit.map(exit, (signed) => () => bodyOf(signed, context.requestId, refusal)))
        )
      } else respond(Exit.fail(refusal))
    }

    const post = (
      credential: Credential,
      request: Request,
      command: Command,
      context: RequestContext,
      respond: Respond
    ): void => {
      const { licenseId } = credential
      const { clientAddress, requestId } = context
      const answerOf = (signed: Signed) => (): Body => {
        onSuccess?.(credential)
        return bodyOf(signed, requestId)
      }
      const pending = pendingCommand({
        rule,
        command,
        origin: { actor_type: "license", actor_id: licenseId, request_id: requestId, ip_address: clientAddress },
        begin: (payload) => signer.begin(payloadOf(payload, request.nonce)),
        span: context.span,
        signs: request,
        resume: (reply) => {
          if (Exit.isSuccess(reply)) reply.value((exit) => respond(Exit.map(exit, answerOf)))
          else {
            const refusal = Cause.findErrorOption(reply.cause)
            if (Option.isSome(refusal)) refuse(credential, request, context, refusal.value, respond)
            else respond(Exit.failCause(reply.cause))
          }
        }
      })
      actors.post(licenseId, pending)
    }

    const admitted =
      (credential: Credential): AdmittedRequest =>
      (body, context) => {
        const request = requestOf(body)
        if (Exit.isFailure(request)) return Exit.failCause(request.cause)
        const { licenseId } = credential
        admission.note(licenseId, context)
        return Effect.mapEager(
          commandOf(credential, request.value, context),
          (command): StartedOperation =>
            (respond) => {
              const limited = admission.limit(licenseId, context, clock.currentTimeMillisUnsafe())
              if (limited === undefined) post(credential, request.value, command, context, respond)
              else respond(Exit.fail(limited))
            }
        )
      }

    return {
      admit: (head) => {
        const presented = presentedKey(head, licenseIds)
        if (presented === "missing" || presented === "invalid") return undefined
        const licenseId = licenseIds.cached(presented.keyHash)
        return licenseId === undefined ? undefined : admitted({ ...presented, licenseId })
      }
    }
  }

  const { endpoints } = Api.groups.runtime
  const { activate, validate, check, consume, deactivate, checkout, heartbeat, checkin } = yield* makeOperations
  // Not `offline`: sealing an envelope needs a fiber.
  return new Map<string, FastOperation>([
    [endpoints.activate.path, fastOperationOf(endpoints.activate, activate)],
    [endpoints.validate.path, fastOperationOf(endpoints.validate, validate)],
    [endpoints.check.path, fastOperationOf(endpoints.check, check)],
    [endpoints.consume.path, fastOperationOf(endpoints.consume, consume)],
    [endpoints.deactivate.path, fastOperationOf(endpoints.deactivate, deactivate)],
    [endpoints.checkout.path, fastOperationOf(endpoints.checkout, checkout)],
    [endpoints.heartbeat.path, fastOperationOf(endpoints.heartbeat, heartbeat)],
    [endpoints.checkin.path, fastOperationOf(endpoints.checkin, checkin)]
  ])
})

type Respond = (outcome: Outcome) => void

/** Decodes a body with the operation's schema; fails for any invalid body. */
const decoder = <Request>(endpoint: HttpApiEndpoint.Top): ((body: Buffer) => Exit.Exit<Request, unknown>) => {
  const decode = bodyDecoder(endpoint)
  return (body) => {
    const { decoded } = decode(body)
    return decoded === invalid ? Exit.fail(invalid) : Exit.succeed(decoded as Request)
  }
}
