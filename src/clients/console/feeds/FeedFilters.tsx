/** The filters of the feeds. */
import { actions, resultClasses } from "../../../insight/activities/Action.ts"
import { ActivitySource } from "../../../insight/activities/Activity.ts"
import { AuditActorType } from "../../../ledger/events/Event.ts"
import { eventTypes } from "../../../ledger/events/EventType.ts"
import { nameOfAction } from "../licenses/ActionWords.ts"
import { choicesOf } from "../parts/Fields.tsx"
import { nameOfEvent } from "../parts/Format.ts"
import { DeviceName, FeatureOf } from "../parts/Names.tsx"
import { customers, licenses, records } from "../pickers/Sources.tsx"
import { DayFilters } from "../reports/UsageFilters.tsx"
import { lastOf, useAsk, useMay } from "../service/Hooks.ts"
import { Filter, TextFilter, useNarrow } from "../tables/List.tsx"
import { ProductFilter } from "../tables/ListFields.tsx"
import { PickFilter } from "../tables/PickFilter.tsx"
import { RecordFilter, SetChip } from "../tables/RecordChip.tsx"
import { EventRecord, nounOf } from "./EventRecord.tsx"
import type { FeedSearch } from "./FeedSearch.ts"

const actionChoices = actions
  .map((id) => ({ id, name: nameOfAction(id) }))
  .sort((one, other) => one.name.localeCompare(other.name))
const resultChoices = choicesOf(resultClasses)
const sourceNames = { runtime: "applications", management: "people and programs", system: "the service" } as const
const sourceChoices = ActivitySource.literals.map((id) => ({ id, name: sourceNames[id] }))
const typeChoices = eventTypes
  .map((id) => ({ id, name: nameOfEvent(id) }))
  .sort((one, other) => one.name.localeCompare(other.name))
const actorChoices = choicesOf(AuditActorType.literals)

/** Other filters choose other entries: the one that is open is closed. */
export const useNarrowFeed = () => {
  const narrow = useNarrow()
  return (change: Partial<Record<keyof FeedSearch, string | undefined>>) => narrow({ open: undefined, ...change })
}

interface Props {
  readonly search: FeedSearch
}

/** Filters that a link sets. */
const LinkedChips = ({ search: { device_id, feature_code, license_id, product_id, request_id } }: Props) => {
  const narrow = useNarrowFeed()
  return (
    <>
      {device_id !== undefined && (
        <SetChip label="Device" id={device_id} onRemove={() => narrow({ device_id: undefined })}>
          <LinkedDevice id={device_id} license={license_id} />
        </SetChip>
      )}
      {feature_code !== undefined && (
        <SetChip label="Feature" id={feature_code} onRemove={() => narrow({ feature_code: undefined })}>
          <FeatureOf code={feature_code} product={product_id} />
        </SetChip>
      )}
      {request_id !== undefined && (
        <SetChip label="Request" id={request_id} onRemove={() => narrow({ request_id: undefined })}>
          <code>{request_id}</code>
        </SetChip>
      )}
    </>
  )
}

interface LinkedDeviceProps {
  readonly id: string
  readonly license: string | undefined
}

/** A device is read with its license, which the address or its entries name. */
const LinkedDevice = ({ id, license }: LinkedDeviceProps) => {
  const [newest] = lastOf(useAsk("listActivities", { query: { device_id: id, limit: 1 } }))?.items ?? []
  const owner = license ?? newest?.license_id
  return owner === undefined ? endOf(id) : <DeviceName id={id} license={owner} />
}

/** Of a device without entries; the chip has the whole id on hover. */
const endOf = (id: string) => `…${id.slice(-4)}`

export const ActivityFilters = ({ search }: Props) => {
  const narrow = useNarrowFeed()
  const may = useMay()
  return (
    <>
      <Filter label="What" value={search.action} choices={actionChoices} onChange={(action) => narrow({ action })} />
      <Filter
        label="Result"
        value={search.result_class}
        choices={resultChoices}
        onChange={(result_class) => narrow({ result_class })}
      />
      <Filter label="By" value={search.source} choices={sourceChoices} onChange={(source) => narrow({ source })} />
      {may("product:read") && <ProductFilter value={search.product_id} />}
      {may("license:read") && (
        <>
          <RecordFilter field="license_id" id={search.license_id} narrow={narrow} source={licenses} />
          <RecordFilter field="customer_id" id={search.customer_id} narrow={narrow} source={customers} />
        </>
      )}
      <LinkedChips search={search} />
      <DayFilters search={search} narrow={narrow} />
    </>
  )
}

export const EventFilters = ({ search }: Props) => {
  const narrow = useNarrowFeed()
  const may = useMay()
  return (
    <>
      <Filter
        label="What"
        value={search.event_type}
        choices={typeChoices}
        onChange={(event_type) => narrow({ event_type })}
      />
      <Filter
        label="By"
        value={search.actor_type}
        choices={actorChoices}
        onChange={(actor_type) => narrow({ actor_type })}
      />
      {search.resource_id !== undefined ? (
        <EventRecordChip id={search.resource_id} onRemove={() => narrow({ resource_id: undefined })} />
      ) : may("license:read") ? (
        <PickFilter label="Record" source={records} onChange={(resource_id) => narrow({ resource_id })} />
      ) : (
        <TextFilter label="Record’s id" value={undefined} onChange={(resource_id) => narrow({ resource_id })} />
      )}
    </>
  )
}

/** A record of any kind: its newest event says which, and has its name. */
const EventRecordChip = ({ id, onRemove }: { readonly id: string; readonly onRemove: () => void }) => {
  const [newest] = lastOf(useAsk("listEvents", { query: { resource_id: id, limit: 1 } }))?.items ?? []
  const isDevice = id.startsWith("dev_")
  return (
    <SetChip label={newest !== undefined ? nounOf(newest) : isDevice ? "Device" : "Record"} id={id} onRemove={onRemove}>
      {newest !== undefined ? <EventRecord of={newest} /> : isDevice ? endOf(id) : <code>{id}</code>}
    </SetChip>
  )
}
