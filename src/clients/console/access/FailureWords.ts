/** Why the last attempt of a delivery failed. Of a response the service reads only the status. */
import { wordsOf } from "../parts/Format.ts"

/** What it means that a receiver responds so. */
const statusWords: Readonly<Record<string, string>> = {
  400: "it could not read the request",
  401: "it asks for credentials",
  403: "it does not allow the request",
  404: "nothing is at this address",
  405: "it does not accept POST here",
  410: "it is gone for good",
  413: "the message is too large for it",
  429: "it gets too many requests",
  500: "it failed",
  502: "what is behind it failed",
  503: "it is not available",
  504: "what is behind it did not answer in time"
}

const reasons: Readonly<Record<string, string>> = {
  timeout: "It did not answer in time",
  connection_failed: "It could not be reached",
  tls_failed: "Its certificate was not accepted",
  address_refused: "Its address is not allowed",
  secret_unreadable: "Its secret cannot be decrypted: rotate it"
}

export const reasonOf = (reason: string | undefined): string => {
  if (reason === undefined) return "none"
  const status = /^status_(\d+)$/.exec(reason)?.[1]
  if (status === undefined) return reasons[reason] ?? wordsOf(reason)
  const words = status.startsWith("3") ? "it redirects, which is not followed" : statusWords[status]
  return `It responded with the status ${status}${words === undefined ? "" : `: ${words}`}`
}
