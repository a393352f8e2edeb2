/** What signed payloads show of a license's owner and metadata: what its policy chooses. */
import { canonicalize } from "../../contract/api/CanonicalJson.ts"
import type { Metadata } from "../../contract/api/Metadata.ts"
import type { LicenseRecord, PolicyRecord } from "../model/LicenseRecords.ts"

interface Shown {
  readonly licensee?: { readonly name: string }
  readonly metadata?: Metadata
}

type Owned = Pick<LicenseRecord, "customer_name" | "metadata">
type Choice = Pick<PolicyRecord, "show_licensee" | "show_metadata">

export const shownOf = (license: Owned, policy: Choice): Shown | undefined => {
  if (!policy.show_licensee && policy.show_metadata.length === 0) return undefined
  const name = policy.show_licensee ? license.customer_name : undefined
  const members = policy.show_metadata.filter((member) => Object.hasOwn(license.metadata, member))
  return {
    ...(name === undefined ? undefined : { licensee: { name } }),
    ...(members.length === 0
      ? undefined
      : { metadata: Object.fromEntries(members.map((member) => [member, license.metadata[member]!])) })
  }
}

export const isShownAlike = (before: Owned, after: Owned, policy: Choice): boolean =>
  canonicalize({ ...shownOf(before, policy) }) === canonicalize({ ...shownOf(after, policy) })
