/** Parses a request's license key, for both paths. A mistyped key fails its checksum and costs no look-up. */
import { Option, Redacted } from "effect"
import type { RequestHead } from "../../api/RequestHead.ts"
import { authorizationHeader } from "../../auth/AuthorizationHeader.ts"
import * as LicenseKey from "../../licenses/model/LicenseKey.ts"
import type { LicenseCredential } from "./RuntimeAuthorization.ts"

/** The key in its canonical form; its license is not known yet. */
type PresentedKey = Omit<LicenseCredential["Service"], "licenseId">

export const presentedKey = (head: RequestHead): PresentedKey | "missing" | "invalid" => {
  const { scheme, credential, repeated } = authorizationHeader(head)
  if (repeated) return "invalid"
  if (scheme !== "license" || credential === "") return "missing"
  const key = LicenseKey.parse(credential)
  if (Option.isNone(key)) return "invalid"
  return { keyHash: LicenseKey.hashHex(key.value), licenseKey: () => Redacted.make(key.value) }
}
