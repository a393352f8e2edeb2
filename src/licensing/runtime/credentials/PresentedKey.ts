/** Parses a request's license key, for both paths. A mistyped key fails its check without a look-up. */
import { Option, Redacted } from "effect"
import { authorizationHeader } from "../../../access/AuthorizationHeader.ts"
import type { RequestHead } from "../../../contract/api/RequestHead.ts"
import * as LicenseKey from "../../model/LicenseKey.ts"
import type { LicenseCredential } from "./RuntimeAuthorization.ts"

/** The key as issued; its license is not known yet. */
type PresentedKey = Omit<LicenseCredential["Service"], "licenseId">

/** Text that is not a generated key is looked up only if vendor keys may exist. */
export const presentedKey = (
  head: RequestHead,
  vendorKeys: { readonly mayBeVendorKeys: () => boolean }
): PresentedKey | "missing" | "invalid" => {
  const { scheme, credential, repeated } = authorizationHeader(head)
  if (repeated) return "invalid"
  if (scheme !== "license" || credential === "") return "missing"
  return keyIn(credential, vendorKeys) ?? "invalid"
}

/** The key that a text is, as far as its form tells. */
export const keyIn = (
  text: string,
  vendorKeys: { readonly mayBeVendorKeys: () => boolean }
): PresentedKey | undefined => {
  const parsed = LicenseKey.parse(text)
  if (Option.isSome(parsed)) return keyOf(parsed.value)
  return vendorKeys.mayBeVendorKeys() && LicenseKey.isVendorKey(text) ? keyOf(text) : undefined
}

const keyOf = (key: LicenseKey.LicenseKey): PresentedKey => ({
  keyHash: LicenseKey.hashHex(key),
  licenseKey: () => Redacted.make(key)
})
