/** Who gets the mails about a license: the address, name and language of the license itself, else of its customer. */
import { type Refusal, refuse } from "../../contract/api/Failure.ts"
import type { NewMail } from "../../ledger/mail/QueuedMail.ts"
import { isMailAddress } from "../../platform/config/MailSettings.ts"
import type { LicenseRecord, LinkRecord } from "../model/LicenseRecords.ts"

type Owned = Pick<LicenseRecord, "customer_email" | "customer_name" | "metadata">

/** Undefined if neither has an address that mail can be sent to. */
export const recipientOf = (
  { customer_email, customer_name, metadata }: Owned,
  customer?: Pick<LinkRecord, "name" | "email" | "language">
): NewMail["to"] | undefined => {
  const address = customer_email ?? customer?.email
  if (address === undefined || !isMailAddress(address)) return undefined
  return {
    address,
    name: customer_name ?? (customer?.name || undefined),
    language: [metadata["language"], customer?.language].find(isLanguage)
  }
}

/** Characters of a language tag (RFC 5646, 4.4.1). */
const languageMax = 35

const isLanguage = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= languageMax

export const noRecipient =
  "There is no e-mail address to send the key to: set customer_email, or the customer's email, or leave send_key out."

export const refuseNoRecipient = (path: string): Refusal<"VALIDATION_ERROR"> =>
  refuse("VALIDATION_ERROR", noRecipient, path)
