/**
 * The kit's shapes are the contract's: this file compiles only if each field of the kit is a field of the contract with the same
 * type. A field that the contract adds does not concern the kit, because clients ignore unknown fields.
 */
import { assert, describe, it } from "@effect/vitest"
import type { Schema } from "effect"
import type { TrustedKey } from "../../../src/clients/kit/judging/Judge.ts"
import { type RefusalCode, ruleOf } from "../../../src/clients/kit/texts/Decisions.ts"
import type * as Kit from "../../../src/clients/kit/texts/Payloads.ts"
import { type Code, isSignedStatus } from "../../../src/contract/api/ErrorCode.ts"
import type { RefusalFacts } from "../../../src/contract/api/RefusalFacts.ts"
import type * as Contract from "../../../src/licensing/model/Payloads.ts"
import type { BindingRequest, ConsumeRequest } from "../../../src/licensing/runtime/RuntimeRequests.ts"
import type { PublicKey } from "../../../src/platform/signing/PublicKey.ts"
import { operations } from "../../contract/cases/Surface.ts"

/** Without readonly, in depth, so that only names and types count. */
type Plain<A> =
  A extends ReadonlyArray<infer Item>
    ? Array<Plain<Item>>
    : A extends object
      ? { -readonly [Name in keyof A]: Plain<A[Name]> }
      : A

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** The kit's fields of a shape of the contract. A field that the contract lacks is `never`, so it is not the same. */
type IsPartOf<Mine, Theirs> = Same<
  Plain<Mine>,
  Plain<{ [Name in keyof Mine]: Name extends keyof Theirs ? Theirs[Name] : never }>
>

type Wire<S extends Schema.Top> = S["Encoded"]

const isSame = <_ extends true>() => true

const shapes = {
  Entitlement: isSame<IsPartOf<Kit.Entitlement, Wire<typeof Contract.EntitlementPayload>>>(),
  OfflineEntitlement: isSame<IsPartOf<Kit.OfflineEntitlement, Wire<typeof Contract.OfflineEntitlementPayload>>>(),
  FloatingCheckout: isSame<IsPartOf<Kit.FloatingCheckout, Wire<typeof Contract.FloatingCheckoutPayload>>>(),
  FloatingLease: isSame<IsPartOf<Kit.FloatingLease, Wire<typeof Contract.FloatingLeasePayload>>>(),
  Deactivation: isSame<IsPartOf<Kit.Deactivation, Wire<typeof Contract.DeactivationPayload>>>(),
  OwnDevices: isSame<IsPartOf<Omit<Kit.OwnDevices, "devices">, Wire<typeof Contract.OwnDevicesPayload>>>(),
  OwnDevice: isSame<IsPartOf<Kit.OwnDevice, Contract.OwnDevice>>(),
  OfflineEnvelope: isSame<IsPartOf<Kit.OfflineEnvelope, Wire<typeof Contract.OfflineEnvelopePayload>>>(),
  Refusal: isSame<IsPartOf<Omit<Kit.Refusal, "code" | "message" | "detail">, RefusalFacts>>(),
  Binding: isSame<IsPartOf<Kit.Binding, BindingRequest>>(),
  Consumption: isSame<IsPartOf<Kit.Consumption, ConsumeRequest>>(),
  TrustedKey: isSame<IsPartOf<Pick<TrustedKey, "kid" | "public_key">, Wire<typeof PublicKey>>>(),
  // A published key can be written as a literal: no member is unknown.
  PublishedKey: isSame<Same<keyof TrustedKey, keyof Wire<typeof PublicKey>>>(),
  // A code that the contract no longer has does not compile.
  codes: isSame<Same<RefusalCode, RefusalCode & Code>>()
}

describe("The kit's shapes", () => {
  it("are those of the contract", () => {
    assert.notInclude(Object.values(shapes), false)
  })

  it("decide every code that a signed refusal can have", () => {
    const runtime = operations.filter(({ credential }) => credential === "license key")
    const answers = runtime.flatMap(({ answers }) => [...answers])
    const codes = new Set(answers.flatMap(([status, { codes }]) => (isSignedStatus(status) ? codes : [])))
    assert.isAbove(codes.size, 25)
    const undecided = [...codes].filter((code) => ruleOf(code) === ruleOf("A_CODE_OF_A_LATER_VERSION"))
    // Unknown parameters and path ids: the kit sends neither.
    assert.sameMembers(undecided, ["BAD_REQUEST", "INVALID_QUERY", "NOT_FOUND"])
  })
})
