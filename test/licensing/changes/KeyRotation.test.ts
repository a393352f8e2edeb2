import { assert, describe, it } from "@effect/vitest"
import { rotateKey } from "../../../src/licensing/changes/KeyRotation.ts"
import { activate, validate } from "../../../src/licensing/rules/Activation.ts"
import { sha256Hex } from "../../../src/platform/signing/Digest.ts"
import { allowed, refusedWith } from "../../support/rules/LicenseRules.ts"
import { activationOf, day, deviceOf, hardware, noon, requestOf, rowsOf } from "../../support/rules/Licenses.ts"

const key = { key_hash: sha256Hex("another key"), license_key_prefix: "LK-12345", license_key_last4: "WXYZ" }

describe("rotate-key", () => {
  it("ends the old key at once; the new one opens the same license with its devices", () => {
    const machine = hardware("machine")
    const { after } = allowed(rowsOf({ devices: [deviceOf(machine)] }), rotateKey, key)
    refusedWith("LICENSE_KEY_INVALID", after, validate, requestOf(machine))
    refusedWith("LICENSE_KEY_INVALID", after, activate, activationOf(hardware("other")))
    allowed(after, validate, { ...requestOf(machine), keyHash: key.key_hash })
  })

  it("stores the key's digest, prefix and last characters, and does not raise the entitlement version", () => {
    const { before, after, changes, reply } = allowed(rowsOf(), rotateKey, key)
    assert.deepStrictEqual(after.license, { ...before.license, ...key, updated_at: noon })
    assert.deepStrictEqual(reply, { license: after.license, policy: after.policy, assignments: [] })
    assert.deepStrictEqual(changes.events, [
      {
        event_type: "license.key_rotated",
        resource_type: "license",
        resource_id: "lic_1",
        metadata: {
          license_key_prefix: { old: "LK-00000", new: "LK-12345" },
          license_key_last4: { old: "ABCD", new: "WXYZ" }
        }
      }
    ])
  })

  it.each(["suspended", "expired"] as const)("is possible while a license is %s", (status) => {
    const { after } = allowed(rowsOf({ license: { status, expires_at: noon - day } }), rotateKey, key)
    assert.strictEqual(after.license.status, status)
  })

  it("is refused on a revoked license", () => {
    refusedWith("LICENSE_STATE_CONFLICT", rowsOf({ license: { status: "revoked" } }), rotateKey, key)
  })
})
