/** The filters of the feeds. */
import { actions, resultClasses } from "../../../insight/activities/Action.ts"
import { ActivitySource } from "../../../insight/activities/Activity.ts"
import { AuditActorType } from "../../../ledger/events/Event.ts"
import { eventTypes } from "../../../ledger/events/EventType.ts"
import { nameOfAction } from "../licenses/ActionWords.ts"
import { choicesOf } from "../parts/Fields.tsx"
import { nameOfEvent } from "../parts/Format.ts"
import { customers, licenses, records } from "../pickers/Sources.tsx"
import { DayFilter } from "../reports/UsageFilters.tsx"
import { useMay } from "../service/Hooks.ts"
import { Filter, TextFilter, useNarrow } from "../tables/List.tsx"
import { ProductFilter } from "../tables/ListFields.tsx"
import { PickFilter } from "../tables/PickFilter.tsx"
import { RecordFilter } from "../tables/RecordChip.tsx"
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

/** These come by links. */
const texts = [
  ["device_id", "Device’s id"],
  ["feature_code", "Feature’s code"],
  ["request_id", "Request’s id"]
] as const

export const ActivityFilters = ({ search }: { readonly search: FeedSearch }) => {
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
      {texts
        .filter(([name]) => search[name] !== undefined)
        .map(([name, label]) => (
          <TextFilter key={name} label={label} value={search[name]} onChange={(text) => narrow({ [name]: text })} />
        ))}
      <DayFilter label="From" value={search.from} onChange={(from) => narrow({ from })} />
      <DayFilter label="To" value={search.to} onChange={(to) => narrow({ to })} />
    </>
  )
}

export const EventFilters = ({ search }: { readonly search: FeedSearch }) => {
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
      {search.resource_id === undefined && may("license:read") ? (
        <PickFilter label="Record" source={records} onChange={(resource_id) => narrow({ resource_id })} />
      ) : (
        <TextFilter
          label="Record’s id"
          value={search.resource_id}
          onChange={(resource_id) => narrow({ resource_id })}
        />
      )}
    </>
  )
}
