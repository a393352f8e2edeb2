/** What nodes send each other, as it is sent: nodes of one version must agree about it. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import { refuse } from "../../../src/contract/api/Failure.ts"
import { Identifiers } from "../../../src/contract/api/Identifier.ts"
import type { RefusalFacts } from "../../../src/contract/api/RefusalFacts.ts"
import {
  encodeFrames,
  type FromOwner,
  type RefusalParts,
  type ToOwner,
  wireVersion
} from "../../../src/licensing/cluster/Wire.ts"
import { refusalToWire, toWire } from "../../../src/licensing/cluster/WireCommands.ts"
import { activate } from "../../../src/licensing/rules/Activation.ts"
import { type Credential, makeOperations } from "../../../src/licensing/runtime/RuntimeOperations.ts"
import type { CheckoutRequest, ConsumeRequest, LeaseRequest } from "../../../src/licensing/runtime/RuntimeRequests.ts"
import { Validations } from "../../../src/licensing/runtime/Validations.ts"
import type { HandedSpan } from "../../../src/platform/telemetry/Traces.ts"

const binding =
  "binding:{app_version:string cluster_id:string container_id:string fingerprint:string hostname:string ip_address:string is_container:boolean is_vm:boolean key:string kind:string namespace:string os:string pod_name:string}"

/** If one of these changes, raise `wireVersion`, and write the new shape and version here. */
const shapes = {
  version: 7,
  fromOwner:
    "{epoch:string outcomes:[[number string string string string] [number string {code:string detail:string facts:{access_ends_at:string consumed:number eligible_through:string expires_at:string extra_credits:number issued_at:string license_id:string max:number nonce:string overage:number product_id:string quota:number remaining:number resets_at:string retry_after_seconds:number starts_at:string status:string until_max:string used:number} isRecorded:boolean message:string}] [number string] [number string]] version:number waitsForLock:boolean}",
  toOwner:
    "{commands:[[number string string null string string string {traceparent:string tracestate:string}]] epoch:string}",
  commands: {
    activate: `{${binding} keyHash:string newDeviceId:string productCode:string}`,
    validate: `{${binding} keyHash:string productCode:string}`,
    check: `{${binding} keyHash:string productCode:string}`,
    consume: `{amount:number ${binding} event_id:string feature_code:string keyHash:string productCode:string reverses:string}`,
    deactivate: `{${binding} keyHash:string productCode:string}`,
    checkout: `{${binding} keyHash:string leaseToken:string newDeviceId:string newLeaseId:string productCode:string tokenHash:string until:number}`,
    heartbeat: "{keyHash:string productCode:string tokenHash:string}",
    checkin: "{keyHash:string productCode:string tokenHash:string}"
  }
}

/** The names in a message, with the types of what they name. */
const shapeOf = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(shapeOf).join(" ")}]`
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value
  const members = Object.entries(value).map(([name, member]) => `${name}:${shapeOf(member)}`)
  return `{${members.sort().join(" ")}}`
}

const shapeSent = (message: ToOwner | FromOwner): string =>
  shapeOf(JSON.parse(encodeFrames(message)[0]!.toString("utf8", 4)))

// Every field is required here, so that a new one is added here, too.
const request: Required<CheckoutRequest & ConsumeRequest & LeaseRequest> = {
  nonce: "n",
  product_code: "p",
  fingerprint: "f",
  hostname: "h",
  os: "o",
  is_vm: false,
  is_container: false,
  container_id: "c",
  cluster_id: "c",
  namespace: "n",
  pod_name: "p",
  app_version: "1",
  feature_code: "f",
  event_id: "e",
  amount: 1,
  reverses: "e",
  lease_token: "l",
  until: 1
}
const span: Required<HandedSpan> = { traceparent: "t", tracestate: "s" }
const facts: Required<RefusalFacts> = {
  license_id: "l",
  product_id: "p",
  issued_at: "i",
  nonce: "n",
  status: "s",
  starts_at: "s",
  expires_at: "e",
  access_ends_at: "a",
  eligible_through: "e",
  quota: 1,
  consumed: 1,
  remaining: 1,
  extra_credits: 1,
  overage: 1,
  resets_at: "r",
  until_max: "u",
  max: 1,
  used: 1,
  retry_after_seconds: 1
}

it.effect("Messages between nodes have the shapes of their version", () =>
  Effect.gen(function* () {
    const operations = yield* makeOperations.pipe(
      Effect.provideService(Validations, {} as Validations["Service"]),
      Effect.provideService(Identifiers, { make: (kind) => Effect.succeed(kind) }),
      Effect.provideService(
        SecureRandom.SecureRandom,
        SecureRandom.make((size) => new Uint8Array(size))
      )
    )
    const { deactivateOwn: _, offline: __, ownDevices: ___, ...handedOver } = operations
    const credential = { licenseId: "l", keyHash: "h" } as Credential
    const context = { requestId: "r", clientAddress: "i" }
    const commands = yield* Effect.all(
      Object.fromEntries(
        Object.values(handedOver).map(({ commandOf, rule }) => [
          rule.name,
          Effect.map(commandOf(credential, request, context) as Effect.Effect<unknown, unknown>, (command) =>
            shapeOf(JSON.parse(JSON.stringify(command)))
          )
        ])
      )
    )
    const refused = refuse("NOT_FOUND", "m", "d", { facts, isRecorded: true })
    const refusal = refusalToWire(refused) as Required<RefusalParts>
    const origin = { actor_type: "license", actor_id: "l", request_id: "r", ip_address: "i" } as const
    const command = { begin: () => {}, command: null, origin, resume: () => {}, rule: activate, signs: { nonce: "n" } }
    const toOwner: Required<ToOwner> = { epoch: "e", commands: [toWire(1, "l", command as never, span)] }
    const fromOwner: Required<FromOwner> = {
      version: wireVersion,
      epoch: "e",
      waitsForLock: true,
      outcomes: [
        [1, "signed", "b", "k", "s"],
        [1, "refused", refusal],
        [1, "untaken"],
        [1, "undecided"]
      ]
    }
    const sent = { version: wireVersion, fromOwner: shapeSent(fromOwner), toOwner: shapeSent(toOwner), commands }
    assert.deepStrictEqual(sent, shapes)
  })
)
