/**
 * The runtime operations on the fast path: a cached key, a valid body, and a command for the license's actor.
 * The framework path handles all other cases.
 */
import { Cause, Clock, Context, Effect, Exit, Option, Result, Schema } from "effect"
import { HttpApi, type HttpApiEndpoint } from "effect/http-api"
import { Api } from "../Api.ts"
import type { Code } from "../api/ErrorCode.ts"
import type { Refusal } from "../api/Failure.ts"
import { bodyFault, parseBody } from "../api/JsonText.ts"
import { metaOf } from "../api/Meta.ts"
import { RequestContext } from "../api/RequestContext.ts"
import { RateLimits } from "../auth/rateLimits/RateLimits.ts"
import type { AdmittedRequest, Body, FastOperation, Outcome, StartedOperation } from "../http/FastPath.ts"
import { LicenseActors } from "../licenses/engine/LicenseActors.ts"
import { pendingCommand } from "../licenses/engine/PendingCommand.ts"
import { isSignable, payloadOf, signedEnvelope, signedErrorOf } from "../signing/SignedAnswers.ts"
import { type Signed, Signer } from "../signing/Signer.ts"
import { LicenseIdCache } from "./credentials/LicenseIdCache.ts"
import { presentedKey } from "./credentials/PresentedKey.ts"
import { IsActivation } from "./credentials/RuntimeAuthorization.ts"
import { type Credential, makeOperations, type Operation } from "./Operations.ts"
import type { RuntimeRequest } from "./Requests.ts"

/** The runtime operations that the fast path handles, by path. */
export const makeFastOperations = Effect.gen(function* () {
  const actors = yield* LicenseActors
  const licenseIds = yield* LicenseIdCache
  const limits = yield* RateLimits
  const signer = yield* Signer
  const clock = yield* Clock.Clock

  /** The body of a signed response; `refused` is the code if it is a refusal. */
  const bodyOf = (signed: Signed, requestId: string, refused?: Code): Body => {
    const meta = metaOf(requestId, clock.currentTimeMillisUnsafe())
    const text = signedEnvelope(refused === undefined ? "data" : "error", signed, meta)
    // The envelope around the signed text is ASCII: one byte per character.
    const length = text.length + Buffer.byteLength(signed.bytes) - signed.bytes.length
    return refused === undefined ? { text, bytes: length } : { text, bytes: length, refused }
  }

  const fastOperationOf = <Request extends RuntimeRequest, Command, Payload, C extends Code>(
    endpoint: HttpApiEndpoint.Top,
    { onSuccess, commandOf, rule }: Operation<Request, Command, Payload, C>
  ): FastOperation => {
    const isActivation = Context.get(endpoint.annotations, IsActivation)
    const requestOf = decoder<Request>(endpoint)

    const refuse = (
      credential: Credential,
      { nonce }: Request,
      context: RequestContext,
      refusal: Refusal,
      respond: Respond
    ): void => {
      const { code, facts, isRecorded } = refusal
      if (isRecorded === true) context.isRefusalRecorded = true
      // The cached key was rotated, or its license deleted: it counts as a failed credential.
      if (code === "LICENSE_KEY_INVALID" || code === "NOT_FOUND") {
        licenseIds.forget(credential.keyHash)
        respond(Effect.provideService(licenseIds.refuseKey, RequestContext, context))
      } else if (facts !== undefined && isSignable(code)) {
        signer.begin(signedErrorOf(refusal, facts, nonce))((exit) =>
          respond(Exit.map(exit, (signed) => () => bodyOf(signed, context.requestId, code)))
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
        context.runtimeCall = { licenseId, operation: endpoint.identifier }
        return Effect.mapEager(
          commandOf(credential, request.value, context),
          (command): StartedOperation =>
            (respond) => {
              const limited = limits.runtime({ licenseId, isActivation }, context, clock.currentTimeMillisUnsafe())
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
  const options = Context.get(
    Api.annotations as Context.Context<HttpApi.PayloadParseOptions>,
    HttpApi.PayloadParseOptions
  )
  const [schema] = endpoint.payload.get("application/json")!.schemas
  const decode = Schema.decodeUnknownExit(schema as Schema.Codec<Request, unknown>, options)
  return (body) => {
    const fault = bodyFault(body)
    if (fault !== undefined) return Exit.fail(fault)
    const parsed = parseBody(body.toString())
    return Result.isFailure(parsed) ? Exit.fail(parsed.failure) : decode(parsed.success)
  }
}
