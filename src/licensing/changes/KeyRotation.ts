/**
 * Replaces a license's key. The rule gets only the stored values of a key: its digest, prefix and last characters. The
 * old key becomes invalid with the commit, because every runtime command contains the digest of its key.
 */

import { type LicenseRecord, type LicenseSnapshot, snapshot } from "../model/LicenseRecords.ts"
import { accept, licenseEvent, type Rule } from "../rules/LicenseCommand.ts"
import { refuseRevoked } from "./Assignments.ts"

export type RotateKeyCommand = Pick<LicenseRecord, "key_hash" | "license_key_prefix" | "license_key_last4">

export const rotateKey: Rule<RotateKeyCommand, LicenseSnapshot, "LICENSE_STATE_CONFLICT"> = {
  name: "rotate key",
  decide: (view, { key_hash, license_key_prefix, license_key_last4 }, now) => {
    const revoked = refuseRevoked(view, now)
    if (revoked !== undefined) return revoked
    const key = { key_hash, license_key_prefix, license_key_last4 }
    return accept({ license: { ...key, updated_at: now }, events: [keyRotatedEvent(view.license, key)] }, snapshot)
  }
}

export const keyRotatedEvent = (license: LicenseRecord, { license_key_prefix, license_key_last4 }: RotateKeyCommand) =>
  licenseEvent("license.key_rotated", license.id, {
    license_key_prefix: { old: license.license_key_prefix, new: license_key_prefix },
    license_key_last4: { old: license.license_key_last4, new: license_key_last4 }
  })
