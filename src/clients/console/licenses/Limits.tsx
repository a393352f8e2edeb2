/** What a license allows, beside what its policy says where the license has a limit of its own. */
import type { ReactNode } from "react"
import type { License } from "../../../licensing/model/License.ts"
import type { Policy } from "../../../vendor/policies/Policy.ts"
import { type LimitRow, limitRows } from "../consequences/LimitRows.ts"
import { Meter } from "../look/Meter.tsx"
import { countOf } from "../parts/Format.ts"
import { Facts, Section } from "../parts/Show.tsx"
import { lastOf, useAsk, useMay } from "../service/Hooks.ts"
import { useHeldSlots } from "./Devices.tsx"
import { ChangeLimits } from "./LicenseEdits.tsx"

interface Props {
  readonly license: License
  readonly mayChange: boolean
}

export const Limits = (props: Props) =>
  useMay()("product:read") ? <WithPolicy {...props} /> : <Shown {...props} policy={undefined} />

const WithPolicy = (props: Props) => (
  <Shown {...props} policy={lastOf(useAsk("getPolicy", { params: { id: props.license.policy_id } }))} />
)

const Shown = ({ license, mayChange, policy }: Props & { readonly policy: Policy | undefined }) => {
  const held = useHeldSlots(license)
  return (
    <Section id="limits" title="Limits" actions={mayChange && <ChangeLimits license={license} />}>
      <Facts
        of={limitRows(license, held).map((row) => [
          row.title,
          <Limit key={row.name} row={row} license={license} policy={policy} />
        ])}
      />
    </Section>
  )
}

interface LimitProps {
  readonly row: LimitRow
  readonly license: License
  readonly policy: Policy | undefined
}

const Limit = ({ license, policy, row: { name, note, used, words } }: LimitProps): ReactNode => {
  const limit = license.limits[name]
  const isOwn = license[name] !== undefined
  const isCounted = used !== undefined && limit !== undefined && limit > 0
  return (
    <>
      {isCounted ? `${countOf(used)} of ${words(limit)}` : used ? `${countOf(used)}, ${words(limit)}` : words(limit)}
      {note !== undefined && <small>{note}</small>}
      {isOwn && <small>{ownWords(limit, policy?.[name], words, policy !== undefined)}</small>}
      {isCounted && <Meter used={used} of={limit} />}
    </>
  )
}

/** “3 from the policy; +5 → 8”. */
const ownWords = (
  limit: number | undefined,
  inPolicy: number | undefined,
  words: LimitRow["words"],
  isKnown: boolean
): string => {
  if (!isKnown) return "this license’s own"
  const more = (limit ?? 0) - (inPolicy ?? 0)
  const isSum = inPolicy !== undefined && inPolicy > 0 && limit !== undefined && limit > 0 && more !== 0
  return isSum
    ? `${words(inPolicy)} from the policy; ${more > 0 ? "+" : "−"}${countOf(Math.abs(more))} → ${words(limit)}`
    : `this license’s own; the policy: ${words(inPolicy)}`
}
