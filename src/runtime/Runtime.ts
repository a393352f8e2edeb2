/**
 * The runtime operations: a request becomes a command to the license's actor, its payload is signed, and the signed bytes
 * are sent as they are. An answer is written once and never serialised again.
 */
import { Context, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { HttpServerResponse } from "effect/http"
import type { Json } from "../api/CanonicalJson.ts"
import { type Code, isRefusal, type Refusal, refuse } from "../api/Failure.ts"
import { Identifiers } from "../api/Identifier.ts"
import { currentMeta } from "../api/Meta.ts"
import { RequestContext, type RuntimeCall } from "../api/RequestContext.ts"
import type { LicenseCredential } from "../auth/Runtime.ts"
import { generateLease } from "../auth/Tokens.ts"
import * as Activation from "../licenses/Activation.ts"
import type { KeyedCommand } from "../licenses/Admission.ts"
import { consume } from "../licenses/Consumption.ts"
import * as Floating from "../licenses/Floating.ts"
import { LicenseActors } from "../licenses/LicenseActors.ts"
import type { Rule } from "../licenses/LicenseCommand.ts"
import { issueOffline } from "../licenses/Offline.ts"
import { sha256Hex } from "../signing/Digest.ts"
import { OfflineEnvelope } from "../signing/OfflineEnvelope.ts"
import { type Signed, Signer } from "../signing/Signer.ts"
import { bindingOf } from "./Bindings.ts"
import type { BindingRequest, ConsumeRequest, LeaseRequest } from "./Requests.ts"
import { Validations } from "./Validations.ts"

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
    offline(credential: Credential, request: BindingRequest): Answer<CodeOf<typeof issueOffline>>
    checkout(credential: Credential, request: BindingRequest): Answer<CodeOf<typeof Floating.checkout>>
    heartbeat(credential: Credential, request: LeaseRequest): Answer<CodeOf<typeof Floating.heartbeat>>
    checkin(credential: Credential, request: LeaseRequest): Answer<CodeOf<typeof Floating.checkin>>
  }
>()("licensing/runtime/Runtime") {
  static readonly layer = Layer.effect(
    Runtime,
    Effect.gen(function* () {
      const actors = yield* LicenseActors
      const signer = yield* Signer
      const validations = yield* Validations
      const ids = yield* Identifiers
      const envelope = yield* OfflineEnvelope
      const random = yield* SecureRandom.SecureRandom

      const commandOf = Effect.fnUntraced(function* (credential: Credential, request: BindingRequest) {
        const { clientAddress, runtimeCall } = yield* RequestContext
        const binding = yield* bindingOf(request, clientAddress)
        if (runtimeCall !== undefined) runtimeCall.binding = binding
        return { keyHash: credential.keyHash, binding }
      })

      /** `{data, signature, meta}` with the very bytes that were signed. */
      const answer = Effect.fnUntraced(function* (signed: Effect.Effect<Signed>) {
        const { bytes, signature } = yield* signed
        const meta = yield* currentMeta
        return HttpServerResponse.text(
          `{"data":${bytes},"signature":${JSON.stringify(signature)},"meta":${JSON.stringify(meta)}}`,
          { contentType: "application/json" }
        )
      })

      /** The signature is made while the change is committed; it leaves only after that. */
      const ask = <Command extends KeyedCommand, Payload, C extends Code>(
        rule: Rule<Command, Payload, C>,
        credential: Credential,
        command: Command
      ): Answer<C> => {
        const begin = (payload: Payload) => signer.begin(payload as Json)
        return asRuntime(actors.ask(credential.licenseId, rule, command, answer, begin))
      }

      return Runtime.of({
        activate: Effect.fnUntraced(function* (credential, request) {
          const command = yield* commandOf(credential, request)
          return yield* ask(Activation.activate, credential, { ...command, newDeviceId: yield* ids.make("device") })
        }),
        validate: Effect.fnUntraced(function* (credential, request) {
          const answer = yield* ask(Activation.validate, credential, yield* commandOf(credential, request))
          validations.count(credential.licenseId, "validations")
          return answer
        }),
        check: Effect.fnUntraced(function* (credential, request) {
          return yield* ask(Activation.check, credential, yield* commandOf(credential, request))
        }),
        consume: Effect.fnUntraced(function* (credential, request) {
          const { feature_code, event_id, amount = 1 } = request
          yield* noteCall({ featureCode: feature_code })
          return yield* ask(consume, credential, {
            ...(yield* commandOf(credential, request)),
            feature_code,
            event_id,
            amount
          })
        }),
        deactivate: Effect.fnUntraced(function* (credential, request) {
          return yield* ask(Activation.deactivate, credential, yield* commandOf(credential, request))
        }),
        offline: Effect.fnUntraced(function* (credential, request) {
          const command = yield* commandOf(credential, request)
          const seal = (payload: object) =>
            answer(
              Effect.flatMap(envelope.seal(credential.licenseKey(), payload as Json), (sealed) =>
                signer.sign(sealed as unknown as Json)
              )
            )
          return yield* asRuntime(actors.ask(credential.licenseId, issueOffline, command, seal))
        }),
        checkout: Effect.fnUntraced(function* (credential, request) {
          const leaseToken = yield* Effect.provideService(generateLease, SecureRandom.SecureRandom, random)
          return yield* ask(Floating.checkout, credential, {
            ...(yield* commandOf(credential, request)),
            newDeviceId: yield* ids.make("device"),
            newLeaseId: yield* ids.make("lease"),
            leaseToken,
            tokenHash: sha256Hex(leaseToken)
          })
        }),
        heartbeat: Effect.fnUntraced(function* (credential, request) {
          return yield* ask(Floating.heartbeat, credential, yield* leaseCommandOf(credential, request))
        }),
        checkin: Effect.fnUntraced(function* (credential, request) {
          return yield* ask(Floating.checkin, credential, yield* leaseCommandOf(credential, request))
        })
      })
    })
  ).pipe(Layer.provide(OfflineEnvelope.layer))
}

const leaseCommandOf = ({ keyHash }: Credential, { lease_token }: LeaseRequest) => {
  const tokenHash = sha256Hex(lease_token)
  return Effect.as(noteCall({ leaseTokenHash: tokenHash }), { keyHash, tokenHash } satisfies Floating.LeaseCommand)
}

/** Leaves with the request what it is about, in case it is refused. */
const noteCall = (known: Pick<RuntimeCall, "featureCode" | "leaseTokenHash">) =>
  Effect.map(RequestContext, ({ runtimeCall }) => {
    if (runtimeCall !== undefined) Object.assign(runtimeCall, known)
  })

/** A license that is gone has no key any more. */
const asRuntime = <A, C extends Code>(
  asked: Effect.Effect<A, Refusal<C> | Refusal<"NOT_FOUND" | "NOT_READY">>
): Effect.Effect<A, Refusal<Exclude<C, "NOT_FOUND"> | "LICENSE_KEY_INVALID" | "NOT_READY" | "VALIDATION_ERROR">> =>
  Effect.mapError(asked, (refusal) =>
    isRefusal(refusal) && refusal.code === "NOT_FOUND" ? unknownKey : refusal
  ) as never

const unknownKey = refuse("LICENSE_KEY_INVALID", "The license key is not valid: check it for typing errors.")
