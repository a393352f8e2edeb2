/** What a mail is before it is rendered: which one, to whom, in which language, with which values. */

/** Names of templates. */
const mailKinds = ["license_key", "rotated_key", "expiry_reminder", "maintenance_reminder", "sign_in_link"] as const

export type MailKind = (typeof mailKinds)[number]

interface Recipient {
  readonly address: string
  readonly name?: string | undefined
  /** A language tag. One without templates gives the mail in the language of the settings. */
  readonly language?: string | undefined
}

/** Values of a template. Those whose names end with _at are instants in epoch milliseconds. */
interface MailValues {
  readonly [name: string]: string | number
}

/** The encrypted part of a queued mail. */
export interface MailContent {
  readonly to: Recipient
  readonly values: MailValues
}

export interface NewMail extends MailContent {
  readonly kind: MailKind
  /** The license that the mail is about: its product's and policy's names become values when the mail is sent. */
  readonly license_id?: string
  /** The mail is given up at this instant, at the latest a day after it was queued. */
  readonly expires_at?: number
}
