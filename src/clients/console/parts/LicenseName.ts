/** How licenses and devices are named. */
import type { Device } from "../../../licensing/model/Device.ts"
import type { License } from "../../../licensing/model/License.ts"
import { countOf } from "./Format.ts"

export const licenseName = ({ customer_email, customer_name, expanded, license_key_last4 }: License) =>
  customer_name || customer_email || expanded?.customer?.name || `License …${license_key_last4}`

/** The owner, and the end of the key: an owner may have several. */
export const shortName = (license: License): string =>
  `${license.customer_name || license.customer_email || "License"} …${license.license_key_last4}`

/** In a question about one license: its owner may have several. */
export const licenseTitle = (license: License): string => {
  const owner = license.customer_name || license.customer_email || license.expanded?.customer?.name
  return `the license …${license.license_key_last4}${owner ? ` of ${owner}` : ""}`
}

export const deviceName = ({ fingerprint, hostname, id, pod_name }: Device) => hostname ?? fingerprint ?? pod_name ?? id

export const licenseCount = (count: number) => `${countOf(count)} license${count === 1 ? "" : "s"}`
