/**
 * The runtime operations: a request becomes a command to the license's actor, its payload is signed, and the signed bytes
 * are sent as they are. An answer is written once and never serialised again.
 */
import { Context, Effect, identity, Layer } from "effect"
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
import type { Binding } from "../licenses/Binding.ts"
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

      /** `{data, signature, meta}` with the very bytes that were signed. */
      const answer = (signed: Effect.Effect<Signed>) =>
        Effect.flatMap(signed, ({ bytes, signature }) =>
          Effect.map(currentMeta, (meta) =>
            HttpServerResponse.text(
              `{"data":${bytes},"signature":${JSON.stringify(signature)},"meta":${JSON.stringify(meta)}}`,
              { contentType: "application/json" }
            )
          )
        )

      /** The signature is made while the change is committed; it leaves only after that. */
      const ask = <Command extends KeyedCommand, Payload, C extends Code>(
        rule: Rule<Command, Payload, C>,
        credential: Credential,
        command: Command
      ): Answer<C> => {
        const begin = (payload: Payload) => signer.begin(payload as Json)
        return asRuntime(actors.ask(credential.licenseId, rule, command, answer, begin))
      }

      const askLease = <C extends Code>(
        rule: Rule<Floating.LeaseCommand, unknown, C>,
        credential: Credential,
        { lease_token }: LeaseRequest
      ): Answer<C> => {
        const tokenHash = sha256Hex(lease_token)
        return Effect.andThen(
          noteCall({ leaseTokenHash: tokenHash }),
          ask(rule, credential, { keyHash: credential.keyHash, tokenHash })
        )
      }

      /** Asks with what a request says of its machine, once that is known to name one. */
      const askBound = <Command extends KeyedCommand, Payload, C extends Code>(
        rule: Rule<Command, Payload, C>,
        credential: Credential,
        request: BindingRequest,
        commandOf: (bound: Bound) => Command
      ): Answer<C> => withBinding(credential, request, (bound) => ask(rule, credential, commandOf(bound)))

      return Runtime.of({
        activate: (credential, request) =>
          Effect.flatMap(ids.make("device"), (newDeviceId) =>
            askBound(Activation.activate, credential, request, (bound) => ({ ...bound, newDeviceId }))
          ),
        validate: (credential, request) =>
          Effect.map(askBound(Activation.validate, credential, request, identity), (answer) => {
            validations.count(credential.licenseId, "validations")
            return answer
          }),
        check: (credential, request) => askBound(Activation.check, credential, request, identity),
        consume: (credential, request) => {
          const { feature_code, event_id, amount = 1 } = request
          return Effect.andThen(
            noteCall({ featureCode: feature_code }),
            askBound(consume, credential, request, ({ keyHash, binding }) => ({
              keyHash,
              binding,
              feature_code,
              event_id,
              amount
            }))
          )
        },
        deactivate: (credential, request) => askBound(Activation.deactivate, credential, request, identity),
        offline: (credential, request) =>
          withBinding(credential, request, (command) => {
            const seal = (payload: object) =>
              answer(
                Effect.flatMap(envelope.seal(credential.licenseKey(), payload as Json), (sealed) =>
                  signer.sign(sealed as unknown as Json)
                )
              )
            return asRuntime(actors.ask(credential.licenseId, issueOffline, command, seal))
          }),
        checkout: Effect.fnUntraced(function* (credential, request) {
          const leaseToken = yield* Effect.provideService(generateLease, SecureRandom.SecureRandom, random)
          const newDeviceId = yield* ids.make("device")
          const newLeaseId = yield* ids.make("lease")
          const fresh = { newDeviceId, newLeaseId, leaseToken, tokenHash: sha256Hex(leaseToken) }
          return yield* askBound(Floating.checkout, credential, request, (bound) => ({ ...bound, ...fresh }))
        }),
        heartbeat: (credential, request) => askLease(Floating.heartbeat, credential, request),
        checkin: (credential, request) => askLease(Floating.checkin, credential, request)
      })
    })
  ).pipe(Layer.provide(OfflineEnvelope.layer))
}

/** What commands of a machine have in common. */
interface Bound extends KeyedCommand {
  readonly binding: Binding
}

const withBinding = <A, E>(
  { keyHash }: Credential,
  request: BindingRequest,
  use: (bound: Bound) => Effect.Effect<A, E>
): Effect.Effect<A, E | Refusal<"VALIDATION_ERROR">> =>
  Effect.withFiber((fiber): Effect.Effect<A, E | Refusal<"VALIDATION_ERROR">> => {
    const { clientAddress, runtimeCall } = fiber.getRef(RequestContext)
    const binding = bindingOf(request, clientAddress)
    if (isRefusal(binding)) return Effect.fail(binding)
    if (runtimeCall !== undefined) runtimeCall.binding = binding
    return use({ keyHash, binding })
  })

/** Leaves with the request what it is about, in case it is refused. */
const noteCall = (known: Pick<RuntimeCall, "featureCode" | "leaseTokenHash">) =>
  Effect.withFiber<void>((fiber) => {
    const { runtimeCall } = fiber.getRef(RequestContext)
    if (runtimeCall !== undefined) Object.assign(runtimeCall, known)
    return Effect.void
  })

/** A license that is gone has no key any more. */
const asRuntime = <A, C extends Code>(
  asked: Effect.Effect<A, Refusal<C> | Refusal<"NOT_FOUND" | "NOT_READY">>
): Effect.Effect<A, Refusal<Exclude<C, "NOT_FOUND"> | "LICENSE_KEY_INVALID" | "NOT_READY" | "VALIDATION_ERROR">> =>
  Effect.mapError(asked, (refusal) =>
    isRefusal(refusal) && refusal.code === "NOT_FOUND" ? unknownKey : refusal
  ) as never

const unknownKey = refuse("LICENSE_KEY_INVALID", "The license key is not valid: check it for typing errors.")
