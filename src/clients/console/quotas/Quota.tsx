/** A feature of a license: how much of its quota is used, in which period, and what comes after it. */
import type { ReactNode } from "react"
import type { LicenseFeature } from "../../../licensing/model/LicenseFeature.ts"
import { Meter } from "../look/Meter.tsx"
import { countOf } from "../parts/Format.ts"
import { Time } from "../parts/Show.tsx"

interface Props {
  readonly feature: LicenseFeature
}

export const Quota = ({ actions, feature }: Props & { readonly actions: ReactNode }) => {
  const { enabled, expires_at, expires_with_license, feature_name, from_policy } = feature
  const { max_consumptions, remaining, total_consumptions } = feature
  const quota = quotaOf(feature)
  const isNoted = !enabled && (quota !== undefined || total_consumptions > 0)
  const notes = [from_policy && "from the policy", isNoted && "off"].filter(Boolean).join(" · ")
  return (
    <li className={enabled ? "quota" : "quota off"}>
      <p className="what">
        <strong>{feature_name}</strong>
        {notes !== "" && <small>{notes}</small>}
        {expires_at !== undefined && (
          <small>
            until <Time at={expires_at} only="day" />
            {expires_with_license === true && ", with the license"}
          </small>
        )}
      </p>
      <Used feature={feature} />
      {actions}
      {quota !== undefined && <Meter used={quota - (remaining ?? 0)} of={quota} />}
      {max_consumptions !== undefined && <Period feature={feature} />}
    </li>
  )
}

/** The quota of the period, with what was carried over. */
export const quotaOf = ({ max_consumptions, rolled_over = 0 }: LicenseFeature): number | undefined =>
  max_consumptions === undefined ? undefined : max_consumptions + rolled_over

const Used = ({ feature }: Props) => {
  const { enabled, extra_credits, overage, remaining = 0, total_consumptions } = feature
  const quota = quotaOf(feature)
  if (quota === undefined)
    return (
      <p className="used quiet">
        {total_consumptions > 0 ? `${countOf(total_consumptions)} used, no limit` : enabled ? "Included" : "Off"}
      </p>
    )
  // Credits and overage have words of their own.
  const used = extra_credits === undefined && overage === undefined ? total_consumptions : quota - remaining
  return (
    <p className="used">
      <strong>{countOf(used)}</strong> of {countOf(quota)} <span className="quiet">· {countOf(remaining)} left</span>
    </p>
  )
}

const Period = ({ feature }: Props) => {
  const { extra_credits = 0, overage = 0, overage_max, reset_period, resets_at, rolled_over = 0 } = feature
  const parts = [
    reset_period !== undefined &&
      (resets_at === undefined ? (
        "does not reset any more: the subscription has no further period"
      ) : (
        <>
          resets on <Time at={resets_at} only="day" />
        </>
      )),
    rolled_over > 0 && `${countOf(rolled_over)} carried over`,
    extra_credits > 0 && `${countOf(extra_credits)} extra credits left`,
    overage > 0 && (
      <span className="status soon">
        {countOf(overage)}
        {overage_max === -1 ? "" : ` of ${countOf(overage_max ?? 0)}`} overage used
      </span>
    ),
    overage === 0 &&
      overage_max !== undefined &&
      (overage_max === -1 ? "any overage allowed" : `${countOf(overage_max)} overage allowed`)
  ].filter((part) => part !== false)
  return parts.length === 0 ? null : (
    <ul className="period">
      {parts.map((part, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts have no other key, and no state.
        <li key={place}>{part}</li>
      ))}
    </ul>
  )
}
