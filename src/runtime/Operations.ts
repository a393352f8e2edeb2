/**
 * The runtime operations, each as the rule that decides it and the way from a request to the rule's command. Whoever answers
 * requests, with a fiber or without one, goes by these.
 */
import { Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import type { Code } from "../api/ErrorCode.ts"
import { isRefusal, type Refusal } from "../api/Failure.ts"
import { Identifiers } from "../api/Identifier.ts"
import type { RequestContext, RuntimeCall } from "../api/RequestContext.ts"
import { generateLease } from "../auth/Tokens.ts"
import * as Activation from "../licenses/rules/Activation.ts"
import type { KeyedCommand, RuntimeCommand } from "../licenses/rules/Admission.ts"
import { consume } from "../licenses/rules/Consumption.ts"
import * as Floating from "../licenses/rules/Floating.ts"
import type { Rule } from "../licenses/rules/LicenseCommand.ts"
import { issueOffline } from "../licenses/rules/Offline.ts"
import { sha256Hex } from "../signing/Digest.ts"
import { bindingOf } from "./Bindings.ts"
import type { LicenseCredential } from "./credentials/RuntimeAuthorization.ts"
import type { BindingRequest, ConsumeRequest, LeaseRequest } from "./Requests.ts"
import { Validations } from "./Validations.ts"

export type Credential = LicenseCredential["Service"]

/** `Payload` is what the rule replies: the answer's `data`. */
export interface Operation<Request, Command, Payload, C extends Code> {
  readonly rule: Rule<Command, Payload, C>
  /** The command, once the request is known to be one; what it is about is left with the context, in case it is refused. */
  readonly commandOf: (credential: Credential, request: Request, context: RequestContext) => Prepared<Command>
  /** Hears of every answer that is no refusal. */
  readonly answered?: (credential: Credential) => void
}

/** Waits for nothing, so it may be run where there is no fiber. */
type Prepared<Command> = Effect.Effect<Command, Refusal<"VALIDATION_ERROR">>

export const makeOperations = Effect.gen(function* () {
  const validations = yield* Validations
  const ids = yield* Identifiers
  const random = yield* SecureRandom.SecureRandom
  const freshLease = Effect.gen(function* () {
    const leaseToken = yield* generateLease
    const newDeviceId = yield* ids.make("device")
    const newLeaseId = yield* ids.make("lease")
    return { newDeviceId, newLeaseId, leaseToken, tokenHash: sha256Hex(leaseToken) }
  }).pipe(Effect.provideService(SecureRandom.SecureRandom, random))

  return {
    activate: {
      rule: Activation.activate,
      commandOf: (credential: Credential, request: BindingRequest, context: RequestContext) =>
        bound(credential, request, context, (command) =>
          Effect.map(ids.make("device"), (newDeviceId) => ({ ...command, newDeviceId }))
        )
    },
    validate: {
      ...ofMachine(Activation.validate),
      answered: ({ licenseId }: Credential) => validations.count(licenseId, "validations")
    },
    check: ofMachine(Activation.check),
    consume: {
      rule: consume,
      commandOf: (credential: Credential, request: ConsumeRequest, context: RequestContext) => {
        const { feature_code, event_id, amount = 1 } = request
        noteCall(context, { featureCode: feature_code })
        return bound(credential, request, context, ({ keyHash, binding }) =>
          Effect.succeed({ keyHash, binding, feature_code, event_id, amount })
        )
      }
    },
    deactivate: ofMachine(Activation.deactivate),
    offline: ofMachine(issueOffline),
    checkout: {
      rule: Floating.checkout,
      commandOf: (credential: Credential, request: BindingRequest, context: RequestContext) =>
        bound(credential, request, context, (command) => Effect.map(freshLease, (fresh) => ({ ...command, ...fresh })))
    },
    heartbeat: ofLease(Floating.heartbeat),
    checkin: ofLease(Floating.checkin)
  }
})

/** An operation that asks with nothing but what a request says of its machine. */
const ofMachine = <Payload, C extends Code>(rule: Rule<RuntimeCommand, Payload, C>) => ({
  rule,
  commandOf: (credential: Credential, request: BindingRequest, context: RequestContext) =>
    bound(credential, request, context, Effect.succeed)
})

const ofLease = <Payload, C extends Code>(rule: Rule<Floating.LeaseCommand, Payload, C>) => ({
  rule,
  commandOf: ({ keyHash }: Credential, { lease_token }: LeaseRequest, context: RequestContext) => {
    const tokenHash = sha256Hex(lease_token)
    noteCall(context, { leaseTokenHash: tokenHash })
    return Effect.succeed({ keyHash, tokenHash })
  }
})

/** Asks with what a request says of its machine, once that is known to name one. */
const bound = <Command extends KeyedCommand>(
  { keyHash }: Credential,
  request: BindingRequest,
  context: RequestContext,
  use: (command: RuntimeCommand) => Prepared<Command>
): Prepared<Command> => {
  const binding = bindingOf(request, context.clientAddress)
  if (isRefusal(binding)) return Effect.fail(binding)
  noteCall(context, { binding })
  return use({ keyHash, binding })
}

const noteCall = ({ runtimeCall }: RequestContext, known: Partial<RuntimeCall>): void => {
  if (runtimeCall !== undefined) Object.assign(runtimeCall, known)
}
