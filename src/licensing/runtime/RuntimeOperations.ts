/** The runtime operations for both paths: the rule of each, and the conversion of requests to the rule's commands. */
import { Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import { generateLease } from "../../access/Tokens.ts"
import type { Code } from "../../contract/api/ErrorCode.ts"
import { isRefusal, type Refusal } from "../../contract/api/Failure.ts"
import { Identifiers } from "../../contract/api/Identifier.ts"
import type { RequestContext, RuntimeCall } from "../../contract/api/RequestContext.ts"
import { sha256Hex } from "../../platform/signing/Digest.ts"
import * as Activation from "../rules/Activation.ts"
import type { KeyedCommand, RuntimeCommand } from "../rules/Admission.ts"
import { consume } from "../rules/Consumption.ts"
import * as Floating from "../rules/Floating.ts"
import type { Rule } from "../rules/LicenseCommand.ts"
import { issueOffline, type OfflineCommand } from "../rules/Offline.ts"
import { deactivateOwn, listOwnDevices } from "../rules/OwnDevices.ts"
import { bindingOf } from "./Bindings.ts"
import type { LicenseCredential } from "./credentials/RuntimeAuthorization.ts"
import type {
  BindingRequest,
  CheckoutRequest,
  ConsumeRequest,
  LeaseRequest,
  OfflineRequest,
  OwnDeviceRequest,
  OwnDevicesQuery
} from "./RuntimeRequests.ts"
import { Validations } from "./Validations.ts"

export type Credential = LicenseCredential["Service"]

/** `Payload` is the rule's result: the response's `data`. */
export interface Operation<Request, Command, Payload, C extends Code> {
  readonly rule: Rule<Command, Payload, C>
  /** Makes the command of a valid request, and notes facts in the context for the record of refused calls. */
  readonly commandOf: (credential: Credential, request: Request, context: RequestContext) => Prepared<Command>
  /** Called for every successful response. */
  readonly onSuccess?: (credential: Credential) => void
}

/** A synchronous effect, so that callers outside a fiber can run it. */
type Prepared<Command> = Effect.Effect<Command, Refusal<"VALIDATION_ERROR">>

export const makeOperations = Effect.gen(function* () {
  const validations = yield* Validations
  const ids = yield* Identifiers
  const random = yield* SecureRandom.SecureRandom
  const newLease = Effect.gen(function* () {
    const leaseToken = yield* generateLease
    const newDeviceId = yield* ids.make("device")
    const newLeaseId = yield* ids.make("lease")
    return { newDeviceId, newLeaseId, leaseToken, tokenHash: sha256Hex(leaseToken) }
  }).pipe(Effect.provideService(SecureRandom.SecureRandom, random))

  return {
    activate: {
      rule: Activation.activate,
      commandOf: (credential: Credential, request: BindingRequest, context: RequestContext) =>
        withBinding(credential, request, context, (command) =>
          Effect.map(ids.make("device"), (newDeviceId) => ({ ...command, newDeviceId }))
        )
    },
    validate: {
      ...bindingOperation(Activation.validate),
      onSuccess: ({ licenseId }: Credential) => validations.count(licenseId, "validations")
    },
    check: bindingOperation(Activation.check),
    consume: {
      rule: consume,
      commandOf: (credential: Credential, request: ConsumeRequest, context: RequestContext) => {
        const { feature_code, event_id, amount = 1, reverses } = request
        noteCall(context, { featureCode: feature_code })
        return withBinding(credential, request, context, (command) =>
          Effect.succeed({ ...command, feature_code, event_id, amount, reverses })
        )
      }
    },
    deactivate: bindingOperation(Activation.deactivate),
    offline: {
      rule: issueOffline,
      commandOf: (credential: Credential, request: OfflineRequest, context: RequestContext) =>
        withBinding(
          credential,
          request,
          context,
          (command): Prepared<OfflineCommand> =>
            request.activate === true
              ? Effect.map(ids.make("device"), (newDeviceId) => ({ ...command, activation: { newDeviceId } }))
              : Effect.succeed(command)
        )
    },
    checkout: {
      rule: Floating.checkout,
      commandOf: (credential: Credential, request: CheckoutRequest, context: RequestContext) =>
        withBinding(credential, request, context, (command) =>
          Effect.map(newLease, (lease) => ({ ...command, ...lease, until: request.until }))
        )
    },
    ownDevices: {
      rule: listOwnDevices,
      commandOf: ({ keyHash }: Credential, { product_code }: OwnDevicesQuery) =>
        Effect.succeed({ keyHash, productCode: product_code })
    },
    deactivateOwn: {
      rule: deactivateOwn,
      commandOf: ({ keyHash }: Credential, { device_id, product_code }: OwnDeviceRequest) =>
        Effect.succeed({ keyHash, productCode: product_code, deviceId: device_id })
    },
    heartbeat: leaseOperation(Floating.heartbeat),
    checkin: leaseOperation(Floating.checkin)
  }
})

/** An operation whose command contains only the binding. */
const bindingOperation = <Payload, C extends Code>(rule: Rule<RuntimeCommand, Payload, C>) => ({
  rule,
  commandOf: (credential: Credential, request: BindingRequest, context: RequestContext) =>
    withBinding(credential, request, context, Effect.succeed)
})

const leaseOperation = <Payload, C extends Code>(rule: Rule<Floating.LeaseCommand, Payload, C>) => ({
  rule,
  commandOf: ({ keyHash }: Credential, { lease_token, product_code }: LeaseRequest, context: RequestContext) => {
    const tokenHash = sha256Hex(lease_token)
    noteCall(context, { leaseTokenHash: tokenHash })
    return Effect.succeed({ keyHash, productCode: product_code, tokenHash })
  }
})

/** Passes the request's binding to `use` if it identifies a machine or container. */
const withBinding = <Command extends KeyedCommand>(
  { keyHash }: Credential,
  request: BindingRequest,
  context: RequestContext,
  use: (command: RuntimeCommand) => Prepared<Command>
): Prepared<Command> => {
  const binding = bindingOf(request, context.clientAddress)
  if (isRefusal(binding)) return Effect.fail(binding)
  noteCall(context, { binding })
  return use({ keyHash, productCode: request.product_code, binding })
}

const noteCall = ({ runtimeCall }: RequestContext, facts: Partial<RuntimeCall>): void => {
  if (runtimeCall !== undefined) Object.assign(runtimeCall, facts)
}
