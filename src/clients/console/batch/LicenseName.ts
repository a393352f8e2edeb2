/** How licenses are named. */
import type { License } from "../../../licensing/model/License.ts"
import { countOf } from "../parts/Format.ts"

export const licenseName = ({ customer_email, customer_name, expanded, license_key_last4 }: License) =>
  customer_name || customer_email || expanded?.customer?.name || `License …${license_key_last4}`

export const licenseCount = (count: number) => `${countOf(count)} license${count === 1 ? "" : "s"}`
