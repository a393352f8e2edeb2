/** What happened to a license: changes with what was there before, uses and refused calls, the newest first. */
import { Link } from "@tanstack/react-router"
import { Fragment, type ReactNode, useState } from "react"
import type { Activity } from "../../../insight/activities/Activity.ts"
import type { Event } from "../../../ledger/events/Event.ts"
import type { License } from "../../../licensing/model/License.ts"
import { type Difference, differencesOf, memberOf } from "../audit/Differences.ts"
import { Value } from "../audit/Value.tsx"
import { Empty } from "../parts/Empty.tsx"
import type { NameOf } from "../parts/FeatureNames.ts"
import { By, DeviceName, FeatureName, useFeatureNames } from "../parts/Names.tsx"
import { HistoryPagination } from "../parts/Pagination.tsx"
import { Loaded, Section, Time } from "../parts/Show.tsx"
import { lastOf, useAsk, useAskPart, useMay } from "../service/Hooks.ts"
import { sentenceOfAction } from "./ActionWords.ts"

export const Timeline = ({ license }: { readonly license: License }) => {
  const { id } = license
  const [cursor, setCursor] = useState<number>()
  const query = { license_id: id, limit: 20, ...(cursor === undefined ? {} : { cursor }) }
  const activities = useAskPart("listActivities", { query })
  const may = useMay()
  const { nameOf } = useFeatureNames(license.product_id)
  return (
    <Section
      id="timeline"
      title="Timeline"
      actions={
        <Link to="/licenses/$id/audit" params={{ id }} className="button quiet">
          Open the audit
        </Link>
      }
    >
      <Loaded of={activities}>
        {({ items, next }) => (
          <>
            {items.length === 0 ? (
              <Empty icon="activity" title="Nothing has happened yet" />
            ) : may("event:read") ? (
              <WithEvents license={license} items={items} nameOf={nameOf} />
            ) : (
              <Items items={items} events={[]} nameOf={nameOf} />
            )}
            <HistoryPagination cursor={cursor} next={next} onChange={setCursor} />
          </>
        )}
      </Loaded>
    </Section>
  )
}

interface ItemsProps {
  readonly nameOf: NameOf
  readonly items: ReadonlyArray<Activity>
  readonly events: ReadonlyArray<Event>
}

/** The events of the license say what was changed. */
const WithEvents = ({ license: { id }, ...props }: Omit<ItemsProps, "events"> & { readonly license: License }) => {
  const newest = props.items.find(({ event_sequence }) => event_sequence !== undefined)?.event_sequence ?? 1
  const query = { resource_type: "license", resource_id: id, cursor: newest + 1, limit: 50 } as const
  return <Items {...props} events={lastOf(useAsk("listEvents", { query }))?.items ?? []} />
}

const Items = ({ events, items, nameOf }: ItemsProps) => (
  <ol className="timeline" aria-label="Timeline">
    {items.map((activity) => (
      <Item
        key={activity.sequence}
        activity={activity}
        nameOf={nameOf}
        event={events.find(({ sequence }) => sequence === activity.event_sequence)}
      />
    ))}
  </ol>
)

interface ItemProps {
  readonly activity: Activity
  readonly event: Event | undefined
  readonly nameOf: NameOf
}

const Item = ({ activity, event, nameOf }: ItemProps) => {
  const { device_id, feature_code, ip_address, license_id, occurred_at, result_class } = activity
  return (
    <li className={result_class}>
      <p>
        <strong>{sentenceOfAction(activity)}</strong>
        {feature_code !== undefined && <FeatureName code={feature_code} nameOf={nameOf} />}
        {device_id !== undefined && license_id !== undefined && (
          <span className="what">
            <DeviceName id={device_id} license={license_id} />
          </span>
        )}
        {event !== undefined && <Changes of={event} nameOf={nameOf} />}
      </p>
      <small>
        <Time at={occurred_at} /> · <By of={activity} />
        {ip_address !== undefined && ` · ${ip_address}`}
      </small>
    </li>
  )
}

const names: Readonly<Record<string, string>> = {
  expires_at: "expiry",
  starts_at: "start",
  maintenance_expires_at: "updates until",
  max_consumptions: "quota",
  max_activations: "devices",
  max_floating_users: "floating seats",
  max_container_instances: "container instances",
  max_transfers: "transfers",
  offline_grace_days: "days offline"
}

/** What the sentence before says already. */
const isTold = ({ after, before, name }: Difference) =>
  name === "status" || (name === "enabled" && before === null && after === true)

interface ChangesProps {
  readonly of: Event
  readonly nameOf: NameOf
}

const Changes = ({ nameOf, of }: ChangesProps): ReactNode => {
  const differences = differencesOf(of.metadata).filter((each) => !isTold(each))
  return differences.length === 0 ? null : (
    <span className="what">
      {differences.map(({ after, before, name }, index) => (
        <Fragment key={name}>
          {index > 0 && ", "}
          {names[name] ?? memberOf(name, nameOf)} {before !== null && <Value name={name} of={before} />}
          {before !== null && " → "}
          <Value name={name} of={after} />
        </Fragment>
      ))}
    </span>
  )
}
