/** How licenses, customers and devices are named. */
import type { SearchResults } from "../../../insight/search/SearchResults.ts"
import type { Device } from "../../../licensing/model/Device.ts"
import type { License } from "../../../licensing/model/License.ts"
import type { Customer } from "../../../vendor/customers/Customer.ts"
import { countOf } from "./Format.ts"

/** An erased customer has its code only. */
export const customerName = ({ code, name }: Pick<Customer, "code" | "name">): string => name || `Customer ${code}`

/** Whom a license belongs to: by what it says itself, or else its customer. */
const ownerOf = ({ customer_email, customer_name, expanded }: License): string | undefined =>
  customer_name || customer_email || expanded?.customer?.name || undefined

export const licenseName = (license: License): string => ownerOf(license) ?? `License …${license.license_key_last4}`

/** The owner, and the end of the key: an owner may have several. */
export const shortName = (license: License): string => `${ownerOf(license) ?? "License"} …${license.license_key_last4}`

/** In a question about one license: its owner may have several. */
export const licenseTitle = (license: License): string => {
  const owner = ownerOf(license)
  return `the license …${license.license_key_last4}${owner ? ` of ${owner}` : ""}`
}

/** The licenses that a search has found, with their customers if it has found those, too. */
export const licensesOf = ({ customers, licenses }: SearchResults): ReadonlyArray<License> =>
  licenses.map((license) => {
    const customer = customers.find(({ id }) => id === license.customer_id)
    return customer === undefined ? license : { ...license, expanded: { ...license.expanded, customer } }
  })

export const deviceName = ({ fingerprint, hostname, id, pod_name }: Device) => hostname ?? fingerprint ?? pod_name ?? id

export const licenseCount = (count: number) => `${countOf(count)} license${count === 1 ? "" : "s"}`
