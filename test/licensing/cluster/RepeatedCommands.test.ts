/** A command that is decided for the second time, because its owner may have executed it, gets the response of the first time. */
import { assert, describe, it } from "@effect/vitest"
import { Exit, Option } from "effect"
import { type Refusal, refuse } from "../../../src/contract/api/Failure.ts"
import { repeated } from "../../../src/licensing/cluster/WireCommands.ts"
import type { PendingCommand } from "../../../src/licensing/engine/PendingCommand.ts"
import { activate, check, deactivate } from "../../../src/licensing/rules/Activation.ts"
import { consume } from "../../../src/licensing/rules/Consumption.ts"
import { checkin, checkout } from "../../../src/licensing/rules/Floating.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { allowed, refusedWith } from "../../support/rules/LicenseRules.ts"
import {
  activationOf,
  deviceOf,
  hardware,
  keyHash,
  minute,
  noon,
  requestOf,
  rowsOf
} from "../../support/rules/Licenses.ts"

const machine = hardware("machine")
const command = {
  ...requestOf(machine),
  newDeviceId: deviceOf(machine).id,
  newLeaseId: "lse_1",
  leaseToken: "lease_1",
  tokenHash: sha256Hex("lease_1")
}
const rows = rowsOf({ policy: { max_floating_users: 1 } })

describe("A repeated command", () => {
  it("that gave a slot back gives it back once, and is refused later or without the mark", () => {
    const active = allowed(rows, activate, activationOf(machine)).after
    const first = allowed(active, deactivate, requestOf(machine))
    const second = allowed(first.after, deactivate, { ...requestOf(machine), isRepeated: true })
    assert.deepStrictEqual([second.changes, second.reply], [{}, first.reply])
    refusedWith("DEVICE_STATE_CONFLICT", first.after, deactivate, requestOf(machine))
    const repeated = { ...requestOf(machine), isRepeated: true }
    refusedWith("DEVICE_STATE_CONFLICT", first.after, deactivate, repeated, noon + minute)
  })

  it("that took a seat takes one and records it once", () => {
    const first = allowed(rows, checkout, command)
    const second = allowed(first.after, checkout, { ...command, isRepeated: true })
    assert.deepStrictEqual([second.changes, second.reply], [{}, first.reply])
  })

  it("that took a seat which its device took again meanwhile ends no seat, and records nothing", () => {
    const first = allowed(rows, checkout, command).after
    const again = { ...command, newLeaseId: "lse_2", leaseToken: "lease_2", tokenHash: sha256Hex("lease_2") }
    const superseded = allowed(first, checkout, again).after
    const { changes, reply } = allowed(superseded, checkout, { ...command, isRepeated: true }, noon + minute)
    assert.deepStrictEqual([changes, reply.lease_token, Date.parse(reply.lease_expires_at)], [{}, "lease_1", noon])
  })

  it("that returned a seat returns it once, and is refused later or without the mark", () => {
    const taken = allowed(rows, checkout, command).after
    const request = { keyHash, tokenHash: command.tokenHash }
    const first = allowed(taken, checkin, request)
    const second = allowed(first.after, checkin, { ...request, isRepeated: true })
    assert.deepStrictEqual([second.changes, second.reply], [{}, first.reply])
    refusedWith("LEASE_NOT_ACTIVE", first.after, checkin, request)
    refusedWith("LEASE_NOT_ACTIVE", first.after, checkin, { ...request, isRepeated: true }, noon + minute)
  })

  it("that changes something is never refused, because its first execution may have been before what refuses it", () => {
    const refused = Exit.fail(refuse("LICENSE_SUSPENDED", "The license is suspended."))
    const answerOf = (rule: typeof consume | typeof check) => {
      let answer: Exit.Exit<unknown, Refusal> | undefined
      const resume: PendingCommand["resume"] = (result) => {
        answer = result
      }
      const waiting: Partial<PendingCommand> = { rule: rule as unknown as PendingCommand["rule"], command: {}, resume }
      repeated(waiting as PendingCommand).resume(refused)
      return Exit.findErrorOption(answer!).pipe(Option.getOrThrow).code
    }
    assert.deepStrictEqual([answerOf(consume), answerOf(check)], ["NOT_READY", "LICENSE_SUSPENDED"])
  })
})
