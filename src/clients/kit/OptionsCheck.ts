/** Finds mistakes in the application's options when the kit opens, not at the first customer. */
import type { KitOptions } from "./KitOptions.ts"

/** The longest wait of setTimeout. A longer one ends at once. */
const timeoutMillisMax = 2_147_483_647

/** Throws a TypeError that names the option and what to write. */
export const checkOptions = (options: KitOptions): void => {
  const {
    baseUrl,
    binding,
    keys,
    productCode = "",
    store,
    timeoutMillis = 1,
    toleranceHours = 0,
    trustPublishedKeys
  } = options
  const need = (isRight: boolean, wanted: string) => {
    if (!isRight) throw new TypeError(`LicenseKit: ${wanted}.`)
  }
  need(
    /^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/.test(baseUrl),
    "baseUrl is the service's address, as https://licenses.example.com, without a query"
  )
  need(!/\/api(\/v\d+)?\/*$/.test(baseUrl), "baseUrl ends before /api/v1, which the kit adds")
  need(/^[a-z0-9][a-z0-9._-]{0,63}$/.test(productCode), "productCode is the code of the product, as editor-pro")
  need(keys?.length > 0 || trustPublishedKeys === true, "keys needs the keys of GET /api/v1/system/public-keys")
  for (const { kid, public_key } of keys)
    need(
      typeof kid === "string" && /^[A-Za-z0-9+/]{43}=$/.test(public_key),
      "keys has entries as GET /api/v1/system/public-keys gives them: kid, and 32 bytes as base64 in public_key"
    )
  need(
    binding?.is_container === true || (binding?.fingerprint ?? "") !== "",
    "binding needs fingerprint, a text that stays the same on this machine, or is_container"
  )
  need(typeof store?.read === "function" && typeof store.write === "function", "store needs read and write")
  need(
    timeoutMillis > 0 && timeoutMillis <= timeoutMillisMax,
    `timeoutMillis is more than 0 and at most ${timeoutMillisMax}`
  )
  need(toleranceHours >= 0, "toleranceHours is at least 0")
}
