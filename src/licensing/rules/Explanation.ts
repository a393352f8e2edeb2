/** The facts about the license in a signed refusal. */
import type { RefusalFacts } from "../../contract/api/RefusalFacts.ts"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import type { LicenseView } from "../model/LicenseRecords.ts"
import { type KeyedCommand, refuseKey } from "./Admission.ts"
import { accessEndOf } from "./Entitlement.ts"
import { accept, type Rule } from "./LicenseCommand.ts"
import { statusAt } from "./Lifecycle.ts"

export const explain = ({ license, policy }: LicenseView, now: number): RefusalFacts => {
  const { expires_at, starts_at } = license
  return {
    license_id: license.id,
    product_id: license.product_id,
    issued_at: formatTimestamp(now),
    status: statusAt(license, policy, now),
    ...(starts_at === undefined ? undefined : { starts_at: formatTimestamp(starts_at) }),
    ...(expires_at === undefined ? undefined : { expires_at: formatTimestamp(expires_at) }),
    ...accessEndOf(license, policy)
  }
}

/** The facts for the refusal of an invalid body, which reaches no other rule. */
export const identify: Rule<KeyedCommand, RefusalFacts, "LICENSE_KEY_INVALID"> = {
  name: "identify",
  decide: (view, command, now) => refuseKey(view, command) ?? accept({}, (after) => explain(after, now))
}
