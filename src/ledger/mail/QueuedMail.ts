/** What a mail is before it is rendered: which one, to whom, in which language, with which values. */

/** The mails, and the values that their templates may name. Names that end with _at are instants in epoch milliseconds. */
export const mailValues = {
  license_key: ["license_key"],
  rotated_key: ["license_key"],
  expiry_reminder: ["days_before"],
  maintenance_reminder: ["days_before"],
  sign_in_link: ["link", "minutes"]
} as const

/** Values of mails about a license, which are read when the mail is sent; those without a value are absent. */
export const licenseValues = [
  "product_name",
  "policy_name",
  "customer_name",
  "license_id",
  "license_key_hint",
  "expires_at",
  "maintenance_expires_at"
] as const

export type MailKind = keyof typeof mailValues

interface Recipient {
  readonly address: string
  readonly name?: string | undefined
  /** A language tag. One without templates gives the mail in the language of the settings. */
  readonly language?: string | undefined
}

export interface MailValues {
  readonly [name: string]: string | number
}

/** The encrypted part of a queued mail. */
export interface MailContent {
  readonly to: Recipient
  readonly values: MailValues
}

export interface NewMail extends MailContent {
  readonly kind: MailKind
  /** The license that the mail is about, whose `licenseValues` the template may use. */
  readonly license_id?: string
  /** The mail is given up at this instant, at the latest a day after it was queued. */
  readonly expires_at?: number
}
