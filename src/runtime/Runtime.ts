/**
 * The runtime operations: a request becomes a command to the license's actor, its payload is signed, and the signed bytes
 * are sent as they are. An answer is written once and never serialised again.
 */
import { Context, Effect, identity, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import type { Json } from "../api/CanonicalJson.ts"
import type { Code } from "../api/ErrorCode.ts"
import type { Refusal } from "../api/Failure.ts"
import { currentMeta, type Meta } from "../api/Meta.ts"
import { RequestContext } from "../api/RequestContext.ts"
import { LicenseActors } from "../licenses/engine/LicenseActors.ts"
import type { Rule } from "../licenses/rules/LicenseCommand.ts"
import { awaited, type Signed, Signer, type Signing } from "../signing/Signer.ts"
import { unknownKey } from "./credentials/RuntimeAuthorization.ts"
import { OfflineEnvelope } from "./OfflineEnvelope.ts"
import { type Credential, makeOperations, type Operation } from "./Operations.ts"

type Answer<C extends Code> = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  Refusal<Exclude<C, "NOT_FOUND">> | Refusal<"LICENSE_KEY_INVALID" | "NOT_READY" | "VALIDATION_ERROR">
>
type Operations = Effect.Success<typeof makeOperations>
type Asking<O> = O extends {
  readonly rule: Rule<never, unknown, infer C>
  readonly commandOf: (credential: Credential, request: infer Request, context: RequestContext) => unknown
}
  ? (credential: Credential, request: Request) => Answer<C>
  : never

export class Runtime extends Context.Service<
  Runtime,
  { readonly [Name in keyof Operations]: Asking<Operations[Name]> }
>()("licensing/runtime/Runtime") {
  static readonly layer = Layer.effect(
    Runtime,
    Effect.gen(function* () {
      const actors = yield* LicenseActors
      const signer = yield* Signer
      const envelope = yield* OfflineEnvelope

      const answer = (signing: Signing) =>
        Effect.flatMap(awaited(signing), (signed) =>
          Effect.map(currentMeta, (meta) =>
            HttpServerResponse.text(signedEnvelope(signed, meta), { contentType: "application/json" })
          )
        )
      /** The signature is made while the change is committed; it leaves only after that. */
      const begin = (payload: unknown) => signer.begin(payload as Json)

      const asking = <Request, Command, Payload, C extends Code>(
        { rule, commandOf, answered }: Operation<Request, Command, Payload, C>,
        ask = (credential: Credential, command: Command): Asked<C> =>
          actors.askWith(credential.licenseId, rule, command, begin, answer)
      ) => {
        const told = (credential: Credential) => (response: HttpServerResponse.HttpServerResponse) => {
          answered?.(credential)
          return response
        }
        return (credential: Credential, request: Request): Answer<C> =>
          Effect.withFiber((fiber) => {
            const prepared = commandOf(credential, request, fiber.getRef(RequestContext))
            const asked = Effect.flatMap(prepared, (command) => asRuntime(ask(credential, command)))
            return answered === undefined ? asked : Effect.map(asked, told(credential))
          })
      }

      const { offline, ...others } = yield* makeOperations
      const issued = asking(offline, (credential, command) => {
        const seal = (payload: object) =>
          Effect.flatMap(envelope.seal(credential.licenseKey(), payload as Json), (sealed) => answer(begin(sealed)))
        return actors.askWith(credential.licenseId, offline.rule, command, identity, seal)
      })
      const { activate, validate, check, consume, deactivate, checkout, heartbeat, checkin } = others
      return Runtime.of({
        activate: asking(activate),
        validate: asking(validate),
        check: asking(check),
        consume: asking(consume),
        deactivate: asking(deactivate),
        offline: issued,
        checkout: asking(checkout),
        heartbeat: asking(heartbeat),
        checkin: asking(checkin)
      })
    })
  ).pipe(Layer.provide(OfflineEnvelope.layer))
}

/** `{data, signature, meta}` with the very bytes that were signed. */
export const signedEnvelope = ({ bytes, signature }: Signed, meta: typeof Meta.Type): string =>
  `{"data":${bytes},"signature":${JSON.stringify(signature)},"meta":${JSON.stringify(meta)}}`

type Asked<C extends Code> = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  Refusal<C> | Refusal<"NOT_FOUND" | "NOT_READY">
>

/** A license that is gone has no key any more. */
const asRuntime = <C extends Code>(asked: Asked<C>): Answer<C> =>
  Effect.mapError(asked, (refusal) => (isFound<C>(refusal) ? refusal : unknownKey))

const isFound = <C extends Code>(refusal: Refusal): refusal is Refusal<Exclude<C, "NOT_FOUND">> =>
  refusal.code !== "NOT_FOUND"
