/** What the search box offers: records, those opened last, and commands. */
import type { ReactNode } from "react"
import type { SearchResults } from "../../../insight/search/SearchResults.ts"
import type { License } from "../../../licensing/model/License.ts"
import type { IconName } from "../look/Icon.tsx"
import { sentenceOf, wordsOf } from "../parts/Format.ts"
import { customerName, licenseCount, licenseName, licensesOf } from "../parts/LicenseName.ts"
import { Key, Status } from "../parts/Show.tsx"
import { lastOf, useAsk } from "../service/Hooks.ts"
import type { Recent } from "../service/Recent.ts"
import type { Command } from "./Commands.ts"

export interface Option {
  readonly key: string
  /** The path of its screen. */
  readonly path: string
  readonly icon: IconName
  readonly title: string
  readonly about?: ReactNode
}

export interface Group {
  readonly name: string
  readonly options: ReadonlyArray<Option>
}

const shownMax = 6

const purchase =
  (path: string, icon: IconName) =>
  (of: SearchResults["orders"][number] | SearchResults["subscriptions"][number]): Option => ({
    key: of.id,
    path: `${path}/${of.id}`,
    icon,
    title: of.external_id,
    about: `${of.external_system} · ${wordsOf(of.status)}`
  })

export const groupsOfResults = (found: SearchResults): ReadonlyArray<Group> =>
  [
    {
      name: "Licenses",
      options: licensesOf(found).map((license) => ({
        key: license.id,
        path: `/licenses/${license.id}`,
        icon: "key",
        title: licenseName(license),
        about: <AboutLicense of={license} />
      }))
    },
    {
      name: "Customers",
      options: found.customers.map((customer) => ({
        key: customer.id,
        path: `/customers/${customer.id}`,
        icon: "people",
        title: customerName(customer),
        about: customer.email ?? customer.code
      }))
    },
    {
      name: "Devices",
      options: found.devices.map(({ hostname, id, license_id, status }) => ({
        key: id,
        path: `/licenses/${license_id}`,
        icon: "device",
        title: hostname ?? id,
        about: wordsOf(status)
      }))
    },
    { name: "Orders", options: found.orders.map(purchase("/orders", "receipt")) },
    { name: "Subscriptions", options: found.subscriptions.map(purchase("/subscriptions", "repeat")) },
    {
      name: "Bulk jobs",
      options: found.bulk_jobs.map((job) => ({
        key: job.id,
        path: `/bulk-jobs/${job.id}`,
        icon: "repeat",
        title: job.dry_run ? `Check: ${wordsOf(job.action)}` : sentenceOf(job.action),
        about: `${wordsOf(job.status)} · ${licenseCount(job.matched)}`
      }))
    }
  ].map(({ name, options }) => ({ name, options: options.slice(0, shownMax) as ReadonlyArray<Option> }))

const AboutLicense = ({ of }: { readonly of: License }) => (
  <>
    <Status of={of.status} /> <OfferOf of={of} /> <Key of={of} />
  </>
)

/** The product and the policy of a license, as words. */
const OfferOf = ({ of: { policy_id, product_id } }: { readonly of: License }) => {
  const product = lastOf(useAsk("getProduct", { params: { id: product_id } }))
  const policy = lastOf(useAsk("getPolicy", { params: { id: policy_id } }))
  return <span>{[product?.name, policy?.name].filter(Boolean).join(" · ")}</span>
}

export const recentGroup = (recent: ReadonlyArray<Recent>): Group => ({
  name: "Recent",
  options: recent.map(({ path, title }) => ({ key: path, path, icon: "activity", title }))
})

/** Commands whose words begin with what is typed. */
export const commandGroup = (commands: ReadonlyArray<Command>, text: string): Group => {
  const words = text.toLowerCase().split(/\s+/)
  return {
    name: "Commands",
    options: commands
      .filter(({ name }) => words.every((word) => ` ${name.toLowerCase()}`.includes(` ${word}`)))
      .map(({ icon, name, to }) => ({ key: to, path: to, icon, title: name }))
  }
}
