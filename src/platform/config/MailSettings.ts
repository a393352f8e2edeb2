/** The settings of mail, which is off without a server and a sender. */
import { optional, optionalSecret, setting, text } from "./Setting.ts"

/** A mail server, as its URL names it. */
export interface MailServer {
  readonly host: string
  readonly port: number
  /** `implicit`: from the first byte. `required`: by STARTTLS before anything else is sent. */
  readonly tls: "implicit" | "required" | "none"
  readonly user: string | undefined
  readonly password: string | undefined
}

export interface MailSender {
  readonly address: string
  readonly name: string | undefined
}

const ports = { "smtp:": 587, "smtps:": 465 } as const
const local = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/** Undefined if the URL is not one of a mail server. A server on this machine needs no TLS. */
export const mailServerOf = (value: string): MailServer | undefined => {
  const url = URL.parse(value)
  if (url === null || !(url.protocol in ports) || url.hostname === "" || url.hash !== "") return undefined
  if (url.pathname !== "" && url.pathname !== "/") return undefined
  const parameters = [...url.searchParams]
  const plain = url.search === "?tls=none"
  if (parameters.length > 0 && !(plain && url.protocol === "smtp:")) return undefined
  if ((url.username === "") !== (url.password === "")) return undefined
  const [user, password] = [decoded(url.username), decoded(url.password)]
  if (user === undefined || password === undefined) return undefined
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? ports[url.protocol as keyof typeof ports] : Number(url.port),
    tls: url.protocol === "smtps:" ? "implicit" : plain || local.test(url.hostname) ? "none" : "required",
    user: user === "" ? undefined : user,
    password: password === "" ? undefined : password
  }
}

/** Undefined if it contains a control character, or encodes something that is not UTF-8. */
const decoded = (encoded: string): string | undefined => {
  const value = new URLSearchParams(`v=${encoded.replaceAll("+", "%2B").replaceAll("&", "%26")}`).get("v") ?? ""
  return /[\p{Cc}\ufffd]/u.test(value) ? undefined : value
}

const address = /^[^\s@\p{C}<>()[\]\\,;:"]{1,64}@[^\s@\p{C}<>()[\]\\,;:"]+$/u

/** Whether mail can be sent to this address: at most 254 characters (RFC 5321), none that end or extend a header. */
export const isMailAddress = (value: string): boolean => value.length <= 254 && address.test(value)

const senderOf = (value: string): MailSender | undefined => {
  const [, name, bracketed] = /^([^<>\p{C}]*)<([^<>]+)>$/u.exec(value) ?? []
  const from = bracketed ?? value
  if (!isMailAddress(from)) return undefined
  const plain = name?.trim().replace(/^"(.*)"$/, "$1")
  return { address: from, name: plain === "" ? undefined : plain }
}

const languageTag = /^[a-z]{2,3}(-[a-z0-9]{2,8})*$/i

export const mailSettings = {
  /** The mail server, with user and password if it needs them; unset: no mail is sent. */
  smtpUrl: optionalSecret(
    "LICENSING_SMTP_URL",
    "a URL like smtps://user:password@host:465 or smtp://user:password@host:587, with ?tls=none only for smtp",
    (value) => mailServerOf(value) !== undefined
  ),
  /** The sender of all mails. */
  mailFrom: optional<MailSender>(
    "LICENSING_MAIL_FROM",
    "an address with or without a name, as Example Ltd <licenses@example.com>",
    senderOf
  ),
  /** A folder with templates that replace or add to those of the service. */
  mailTemplates: optional("LICENSING_MAIL_TEMPLATES", "a folder", text),
  /** The language of mails to customers whose metadata name none. */
  mailLanguage: setting("LICENSING_MAIL_LANGUAGE", "a language tag, as en or de", "en", (value) =>
    languageTag.test(value) ? value : undefined
  )
}
