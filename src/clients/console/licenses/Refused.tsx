/** What applications were refused lately, and what ends that: the reason first, then the remedy beside it. */

import { Link } from "@tanstack/react-router"
import { Effect } from "effect"
import { type ReactNode, useRef } from "react"
import { refuse } from "../../../contract/api/Failure.ts"
import type { Activity } from "../../../insight/activities/Activity.ts"
import type { License } from "../../../licensing/model/License.ts"
import { Client } from "../../client/Client.ts"
import { Consequences } from "../consequences/Consequences.tsx"
import { startOfDay } from "../parts/Days.ts"
import { Action } from "../parts/Dialog.tsx"
import type { NameOf } from "../parts/FeatureNames.ts"
import { countOf } from "../parts/Format.ts"
import { FeatureName, useFeatureNames } from "../parts/Names.tsx"
import { Time, Waiting } from "../parts/Show.tsx"
import { causeOf, changeBy, lastOf, useAsk, useMay } from "../service/Hooks.ts"
import { send } from "../service/Service.ts"
import { Extend, type Limit, Reinstate, RenewMaintenance, restore } from "./LicenseActions.tsx"
import { groupsOf, type RefusalGroup, wordsOfRefusal } from "./RefusalWords.ts"

const daysBack = 30
const readMax = 50

interface LatelyProps {
  readonly id: string
  /** What is shown once the refused calls of the last days are read, the newest first; undefined: they cannot be read. */
  readonly children: (refused: ReadonlyArray<Activity> | undefined) => ReactNode
}

export const RefusedLately = (props: LatelyProps) =>
  useMay()("report:read") ? <Reading {...props} /> : props.children(undefined)

const Reading = ({ children, id }: LatelyProps) => {
  const query = { license_id: id, result_class: "refused", from: startOfDay(-daysBack), limit: readMax } as const
  const asked = useAsk("listActivities", { query })
  const read = lastOf(asked)
  // What is refused stands above the rest, which would move if it came later.
  return read === undefined && causeOf(asked) === undefined ? <Waiting /> : children(read?.items)
}

interface Props {
  readonly license: License
  readonly refused: ReadonlyArray<Activity>
  readonly mayChange: boolean
  readonly isFew: boolean
}

export const Refused = ({ isFew, license, mayChange, refused }: Props) => {
  const { nameOf } = useFeatureNames(license.product_id)
  return (
    <ul className={isFew ? "refusals few" : "refusals"}>
      {groupsOf(refused).map((group) => (
        <Group key={group.key} group={group} license={license} mayChange={mayChange} nameOf={nameOf} />
      ))}
    </ul>
  )
}

const timesOf = (count: number) =>
  count === 1 ? "Once" : `${countOf(count)}${count === readMax ? " or more" : ""} times`

interface GroupProps extends Omit<Props, "refused" | "isFew"> {
  readonly group: RefusalGroup
  readonly nameOf: NameOf
}

const Group = ({ group, license, mayChange, nameOf }: GroupProps) => {
  const { code, feature_code, occurred_at } = group.latest
  return (
    <li>
      <p>
        <strong>{wordsOfRefusal(code)}</strong>
        {feature_code !== undefined && <FeatureName code={feature_code} nameOf={nameOf} />}
        <small>
          {timesOf(group.count)}, last <Time at={occurred_at} />
        </small>
      </p>
      <div className="row">{mayChange && remedyOf(group, license)}</div>
    </li>
  )
}

const remedyOf = ({ latest: { code } }: RefusalGroup, license: License): ReactNode => {
  switch (code) {
    case "LICENSE_EXPIRED":
      return <Extend license={license} isPlain />
    case "LICENSE_SUSPENDED":
      return license.status === "suspended" && <Reinstate license={license} />
    case "ACTIVATION_LIMIT_REACHED":
      return (
        <>
          <ToPart part="devices">Reset a device</ToPart>
          <OneMore license={license} limit="max_activations" noun="device" />
        </>
      )
    case "CONTAINER_LIMIT_REACHED":
      return <OneMore license={license} limit="max_container_instances" noun="container instance" />
    case "FLOATING_LIMIT_REACHED":
      return (
        <>
          <ToPart part="seats">See who has them</ToPart>
          <OneMore license={license} limit="max_floating_users" noun="seat" />
        </>
      )
    case "DEVICE_BLACKLISTED":
      return <ToPart part="devices">Unblock the device</ToPart>
    case "USAGE_LIMIT_EXCEEDED":
      return <ToPart part="features">Add credits</ToPart>
    case "FEATURE_NOT_ENTITLED":
    case "FEATURE_DISABLED":
    case "FEATURE_EXPIRED":
      return <ToPart part="features">Change the features</ToPart>
    case "VERSION_UNKNOWN":
      return <AddVersion license={license} />
    case "VERSION_NOT_ENTITLED":
      return license.maintenance_expires_at === undefined ? (
        <Extend license={license} isPlain />
      ) : (
        <RenewMaintenance license={license} isPlain />
      )
    default:
      return null
  }
}

const AddVersion = ({ license: { product_id } }: { readonly license: License }) => {
  const may = useMay()
  return may("product:read") ? (
    <Link to="/products/$id/versions" params={{ id: product_id }} className="button">
      Add the version
    </Link>
  ) : null
}

/** A plain link: the part is on the same screen. */
const ToPart = ({ children, part }: { readonly part: string; readonly children: string }) => (
  <a href={`#${part}`} className="button">
    {children}
  </a>
)

interface OneMoreProps {
  readonly license: License
  readonly limit: Limit
  readonly noun: string
}

const OneMore = ({ license, limit, noun }: OneMoreProps) => {
  const now = license.limits[limit] ?? 0
  const sent = useRef(false)
  // The refusal is of an earlier limit: without one, a number would begin to limit the license.
  if (now === 0 && limit !== "max_floating_users") return null
  return (
    <Action
      label={`Allow one more ${noun}`}
      effect={`This license alone may have ${countOf(now + 1)} in place of ${countOf(now)}.`}
      preview={() => <Consequences id={license.id} change={{ action: "update", parameters: { [limit]: now + 1 } }} />}
      run={() => changeBy(oneMore(license, limit, now + 1, sent))}
      undo={(after) => ({ said: `The license may have ${countOf(now + 1)}.`, run: restore(license, limit, after) })}
    />
  )
}

/** Raises a limit, unless somebody has changed it since it was shown. `sent`: an earlier attempt may have raised it. */
const oneMore = Effect.fnUntraced(function* (
  { id, limits }: License,
  limit: Limit,
  raised: number,
  sent: { current: boolean }
) {
  const params = { id }
  const current = yield* send("getLicense", { params })
  const value = current.limits[limit]
  if (value !== limits[limit] && !(sent.current && value === raised)) return yield* changed
  sent.current = true
  return yield* Client.ifUnchanged(current)(send("updateLicense", { params, payload: { [limit]: raised } }))
})

const changed = refuse("CONFLICT", "Somebody has changed this limit meanwhile: reload the page to see it.")
