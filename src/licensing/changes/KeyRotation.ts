/**
 * Replaces a license's key. The rule gets only the stored values of a key: its digest, prefix and last characters. The
 * old key becomes invalid with the commit, because every runtime command contains the digest of its key.
 */

import type { NewMail } from "../../ledger/mail/QueuedMail.ts"
import { type LicenseRecord, type LicenseSnapshot, snapshot } from "../model/LicenseRecords.ts"
import { accept, licenseEvent, type Rule, reject } from "../rules/LicenseCommand.ts"
import { refuseRevoked } from "./Assignments.ts"
import { noRecipient, recipientOf } from "./MailRecipient.ts"

export type RotateKeyCommand = Pick<LicenseRecord, "key_hash" | "license_key_prefix" | "license_key_last4">

interface RotateAndSendCommand extends RotateKeyCommand {
  /** Whether the caller mails the key. */
  readonly send_key?: boolean | undefined
  /** How the customer signed in who asked for the key at the customer's page. */
  readonly signedInBy?: "key" | "link" | undefined
}

export interface RotatedKey extends LicenseSnapshot {
  /** Who gets the key by mail. */
  readonly recipient?: NewMail["to"]
}

export const rotateKey: Rule<RotateAndSendCommand, RotatedKey, "LICENSE_STATE_CONFLICT" | "VALIDATION_ERROR"> = {
  name: "rotate key",
  needs: ({ send_key }) => (send_key === true ? { owner: true } : {}),
  decide: (view, { key_hash, license_key_prefix, license_key_last4, send_key, signedInBy }, now) => {
    const revoked = refuseRevoked(view, now)
    if (revoked !== undefined) return revoked
    const { license } = view
    const customer = license.customer_id === undefined ? undefined : view.link("customer", license.customer_id)
    const recipient = send_key === true ? recipientOf(license, customer) : undefined
    if (send_key === true && recipient === undefined)
      return reject("VALIDATION_ERROR", noRecipient, { detail: "send_key" })
    const key = { key_hash, license_key_prefix, license_key_last4 }
    const requested =
      signedInBy === undefined ? [] : [licenseEvent("portal.key_requested", license.id, { by: signedInBy })]
    const events = [...requested, keyRotatedEvent(license, key)]
    return accept({ license: { ...key, updated_at: now }, events }, (after) => ({
      ...snapshot(after),
      ...(recipient && { recipient })
    }))
  }
}

export const keyRotatedEvent = (license: LicenseRecord, { license_key_prefix, license_key_last4 }: RotateKeyCommand) =>
  licenseEvent("license.key_rotated", license.id, {
    license_key_prefix: { old: license.license_key_prefix, new: license_key_prefix },
    license_key_last4: { old: license.license_key_last4, new: license_key_last4 }
  })
