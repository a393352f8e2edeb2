/** Random floating leases and the commands that speak of them. */
import * as fc from "fast-check"
import type { Binding } from "../../src/licenses/model/Binding.ts"
import type { DeviceRecord, LeaseRecord, LicenseView } from "../../src/licenses/model/LicenseRecords.ts"
import type { RuntimeCommand } from "../../src/licenses/rules/Admission.ts"
import type { CheckoutCommand, LeaseCommand } from "../../src/licenses/rules/Floating.ts"
import { sha256Hex } from "../../src/signing/Digest.ts"
import { deviceOf, keyHash, leaseOf, minute, noon } from "./Licenses.ts"

/** How the random leases of a device stand: the one that may be live, and one of former days. */
export const leaseSpecs = fc.record({
  end: fc.oneof(
    { weight: 4, arbitrary: fc.constant(20 * minute) },
    { weight: 2, arbitrary: fc.constantFrom(-1, 0, 1) }
  ),
  besideSlot: fc.boolean(),
  former: fc.option(
    fc.constantFrom<LeaseRecord["status"]>("checked_in", "superseded", "expired", "ended", "blacklisted")
  )
})

export type LeaseSpec = typeof leaseSpecs extends fc.Arbitrary<infer A> ? A : never

const formerToken = (device: DeviceRecord) => sha256Hex(`former lease of ${device.id}`)

/** Whoever is active without a slot holds a seat; whoever has a slot may hold one as well. */
export const leasesFrom = (device: DeviceRecord, spec: LeaseSpec): ReadonlyArray<LeaseRecord> => {
  const isLive = device.status === "active" && (!device.holds_slot || spec.besideSlot)
  const ended = noon - 30 * minute
  return [
    ...(isLive ? [leaseOf(device, { expires_at: noon + spec.end })] : []),
    ...(spec.former === null
      ? []
      : [
          leaseOf(device, {
            id: `lse_former_${device.id}`,
            token_hash: formerToken(device),
            status: spec.former,
            expires_at: ended,
            ended_at: ended
          })
        ])
  ]
}

/** Part of every token that random checkouts bring. */
export const tokenMark = "token-of-a-checkout"

/** A checkout that makes a lease of its own. */
export const checkouts = (requests: fc.Arbitrary<RuntimeCommand>): fc.Arbitrary<CheckoutCommand> =>
  fc.tuple(requests, fc.uuid()).map(([request, unique]) => ({
    ...request,
    newDeviceId: deviceOf(request.binding).id,
    newLeaseId: `lse_${unique}`,
    leaseToken: `lease_${tokenMark}_${unique}`,
    tokenHash: sha256Hex(unique)
  }))

const keys = fc.oneof(
  { weight: 19, arbitrary: fc.constant(keyHash) },
  { weight: 1, arbitrary: fc.constant("0".repeat(64)) }
)

/** Commands that name the leases of random licenses, the former ones, and leases that never were. */
export const leaseCommands = (bindings: ReadonlyArray<Binding>): fc.Arbitrary<LeaseCommand> =>
  fc.record({
    keyHash: keys,
    tokenHash: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...bindings.map((binding) => leaseOf(deviceOf(binding)).token_hash)) },
      { weight: 2, arbitrary: fc.constantFrom(...bindings.map((binding) => formerToken(deviceOf(binding)))) },
      { weight: 1, arbitrary: fc.constant(sha256Hex("unheard-of")) }
    )
  })

/** The same for the lease that the device holds when the command is decided, whatever its token is by then. */
export const holding = (bindings: ReadonlyArray<Binding>): fc.Arbitrary<LeaseCommand & { readonly device: string }> =>
  fc
    .tuple(leaseCommands(bindings), fc.constantFrom(...bindings))
    .map(([command, binding]) => ({ ...command, device: deviceOf(binding).id }))

export const heldLease = (view: LicenseView, command: LeaseCommand & { readonly device: string }): LeaseCommand => ({
  keyHash: command.keyHash,
  tokenHash: view.liveLeaseOf(command.device)?.token_hash ?? command.tokenHash
})
