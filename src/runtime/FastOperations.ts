/**
 * The runtime operations on the direct way: a key that is remembered, a body that is right, a letter to the license's actor.
 * Whatever else there may be to say of a key or a body is said on the general way.
 */
import { Cause, Clock, Context, Effect, Exit, Option, Result, Schema } from "effect"
import { HttpApi, type HttpApiEndpoint } from "effect/http-api"
import { Api } from "../Api.ts"
import type { Json } from "../api/CanonicalJson.ts"
import type { Code } from "../api/ErrorCode.ts"
import type { Refusal } from "../api/Failure.ts"
import { bodyFault, parseBody } from "../api/JsonText.ts"
import { metaOf } from "../api/Meta.ts"
import { RequestContext } from "../api/RequestContext.ts"
import { RateLimits } from "../auth/rateLimits/RateLimits.ts"
import type { AdmittedRequest, Body, FastOperation, Outcome, StartedOperation } from "../http/FastPath.ts"
import { LicenseActors } from "../licenses/engine/LicenseActors.ts"
import { pendingCommand } from "../licenses/engine/PendingCommand.ts"
import { type Signed, Signer, type Signing } from "../signing/Signer.ts"
import { LicenseIdCache } from "./credentials/LicenseIdCache.ts"
import { presentedKey } from "./credentials/PresentedKey.ts"
import { IsActivation } from "./credentials/RuntimeAuthorization.ts"
import { type Credential, makeOperations, type Operation } from "./Operations.ts"
import { signedEnvelope } from "./Runtime.ts"

/** The operations of the runtime that have a direct way, by their path. */
export const makeFastOperations = Effect.gen(function* () {
  const actors = yield* LicenseActors
  const known = yield* LicenseIdCache
  const limits = yield* RateLimits
  const signer = yield* Signer
  const clock = yield* Clock.Clock
  const begin = (payload: unknown): Signing => signer.begin(payload as Json)

  const directOf = <Request, Command, Payload, C extends Code>(
    endpoint: HttpApiEndpoint.Top,
    { answered, commandOf, rule }: Operation<Request, Command, Payload, C>
  ): FastOperation => {
    const isActivation = Context.get(endpoint.annotations, IsActivation)
    const requestOf = decoder<Request>(endpoint)

    const refused = (credential: Credential, about: RequestContext, refusal: Refusal, answer: Answer): void => {
      // The key was the license's until it was rotated, or the license until it was deleted: a failed credential like any other.
      if (refusal.code === "LICENSE_KEY_INVALID" || refusal.code === "NOT_FOUND") {
        known.forget(credential.keyHash)
        answer(Effect.provideService(known.refused, RequestContext, about))
      } else answer(Exit.fail(refusal))
    }

    const ask = (credential: Credential, command: Command, about: RequestContext, answer: Answer): void => {
      const { licenseId } = credential
      const { clientAddress, requestId } = about
      const bodyOf = (signed: Signed) => (): Body => {
        answered?.(credential)
        const text = signedEnvelope(signed, metaOf(requestId, clock.currentTimeMillisUnsafe()))
        // What stands around the signed text has one byte for each character.
        return { text, bytes: text.length + Buffer.byteLength(signed.bytes) - signed.bytes.length }
      }
      const letter = pendingCommand({
        rule,
        command,
        origin: { actor_type: "license", actor_id: licenseId, request_id: requestId, ip_address: clientAddress },
        begin,
        resume: (begun) => {
          if (Exit.isSuccess(begun)) begun.value((exit) => answer(Exit.map(exit, bodyOf)))
          else {
            const refusal = Cause.findErrorOption(begun.cause)
            if (Option.isSome(refusal)) refused(credential, about, refusal.value, answer)
            else answer(Exit.failCause(begun.cause))
          }
        }
      })
      actors.post(licenseId, letter)
    }

    const opened =
      (credential: Credential): AdmittedRequest =>
      (body, about) => {
        const request = requestOf(body)
        if (Exit.isFailure(request)) return Exit.failCause(request.cause)
        const { licenseId } = credential
        about.runtimeCall = { licenseId, operation: endpoint.identifier }
        return Effect.mapEager(
          commandOf(credential, request.value, about),
          (command): StartedOperation =>
            (answer) => {
              const limited = limits.runtime({ licenseId, isActivation }, about, clock.currentTimeMillisUnsafe())
              if (limited === undefined) ask(credential, command, about, answer)
              else answer(Exit.fail(limited))
            }
        )
      }

    return {
      open: (head) => {
        const presented = presentedKey(head)
        if (presented === "missing" || presented === "invalid") return undefined
        const licenseId = known.remembered(presented.keyHash)
        return licenseId === undefined ? undefined : opened({ ...presented, licenseId })
      }
    }
  }

  const { endpoints } = Api.groups.runtime
  const { activate, validate, check, consume, deactivate, checkout, heartbeat, checkin } = yield* makeOperations
  // An offline envelope is sealed by effects of its own.
  return new Map<string, FastOperation>([
    [endpoints.activate.path, directOf(endpoints.activate, activate)],
    [endpoints.validate.path, directOf(endpoints.validate, validate)],
    [endpoints.check.path, directOf(endpoints.check, check)],
    [endpoints.consume.path, directOf(endpoints.consume, consume)],
    [endpoints.deactivate.path, directOf(endpoints.deactivate, deactivate)],
    [endpoints.checkout.path, directOf(endpoints.checkout, checkout)],
    [endpoints.heartbeat.path, directOf(endpoints.heartbeat, heartbeat)],
    [endpoints.checkin.path, directOf(endpoints.checkin, checkin)]
  ])
})

type Answer = (outcome: Outcome) => void

/** Reads a body as the operation's schema wants it; fails for any that is not right. */
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
