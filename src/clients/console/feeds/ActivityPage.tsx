/** What happens now and what happened: the activities with their results, or the events with every change. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { useCallback } from "react"
import type { Activity } from "../../../insight/activities/Activity.ts"
import type { Event } from "../../../ledger/events/Event.ts"
import { nameOfActivity } from "../licenses/ActionWords.ts"
import { wordsOfRefusal } from "../licenses/RefusalWords.ts"
import { nameOfEvent } from "../parts/Format.ts"
import { By, RecordName } from "../parts/Names.tsx"
import { Heading, Status, Time } from "../parts/Show.tsx"
import { run, useMay } from "../service/Hooks.ts"
import { Filter } from "../tables/List.tsx"
import { ActivityDetails, EventDetails } from "./Details.tsx"
import { EventRecord, nounOf } from "./EventRecord.tsx"
import { ActivityFilters, EventFilters, useNarrowFeed } from "./FeedFilters.tsx"
import { activityFiltersOf, eventFiltersOf, type FeedSearch } from "./FeedSearch.ts"
import { type FeedColumn, FeedTable } from "./FeedTable.tsx"
import { LiveView } from "./LiveView.tsx"
import { useFeed } from "./UseFeed.ts"

const route = getRouteApi("/activity")

const feeds = [
  { id: "activities", name: "What was done, and refused" },
  { id: "events", name: "What has changed" }
]

export const ActivityPage = () => {
  const search: FeedSearch = route.useSearch()
  const may = useMay()
  const narrow = useNarrowFeed()
  const isEvents = search.feed === "events" || !may("report:read")
  const hasBoth = may("report:read") && may("event:read")
  return (
    <>
      <Heading title="Activity" />
      <search className="row filters" aria-label="Filters">
        {hasBoth && (
          <Filter
            label="Show"
            value={isEvents ? "events" : "activities"}
            choices={feeds}
            needed
            onChange={(feed) => narrow({ feed: feed === "events" ? feed : undefined })}
          />
        )}
        {isEvents ? <EventFilters search={search} /> : <ActivityFilters search={search} />}
      </search>
      {isEvents ? <Events search={search} /> : <Activities search={search} />}
    </>
  )
}

interface Props {
  readonly search: FeedSearch
}

const limit = 50
const from = (cursor: number | undefined) => ({ limit, ...(cursor === undefined ? {} : { cursor }) })

/** Opens an entry, which the address names, or closes it. */
const useToggle = () => {
  const navigate = useNavigate()
  return useCallback(
    (sequence: number) =>
      void navigate({
        to: ".",
        search: ((before: FeedSearch) => ({
          ...before,
          open: before.open === sequence ? undefined : sequence
        })) as never,
        replace: true,
        resetScroll: false
      }),
    [navigate]
  )
}

const activityColumns: ReadonlyArray<FeedColumn<Activity>> = [
  { title: "When", show: ({ occurred_at }) => <Time at={occurred_at} /> },
  {
    title: "Result",
    show: ({ code, result_class }) => (
      <>
        <Status of={result_class} />
        {code !== undefined && <small>{wordsOfRefusal(code)}</small>}
      </>
    )
  },
  {
    title: "License",
    goes: "last",
    show: ({ license_id }) => <RecordName field="license_id" id={license_id} />
  },
  { title: "By", goes: "next", show: (activity) => <By of={activity} /> }
]
const activityFacts = (activity: Activity) => <ActivityDetails of={activity} />

const Activities = ({ search }: Props) => {
  const query = activityFiltersOf(search)
  const onToggle = useToggle()
  const live = useFeed<Activity>(
    JSON.stringify([query, search.cursor]),
    (cursor) => run("listActivities", { query: { ...query, ...from(cursor) } }),
    { start: search.cursor, isOpen: search.open !== undefined }
  )
  return (
    <LiveView live={live}>
      {(entries) => (
        <FeedTable
          caption="Activities"
          entries={entries}
          what={nameOfActivity}
          columns={activityColumns}
          facts={activityFacts}
          open={search.open}
          onToggle={onToggle}
        />
      )}
    </LiveView>
  )
}

const eventColumns: ReadonlyArray<FeedColumn<Event>> = [
  { title: "When", show: ({ created_at }) => <Time at={created_at} /> },
  {
    title: "Record",
    goes: "last",
    show: (event) => (
      <>
        {nounOf(event)}
        <small>
          <EventRecord of={event} />
        </small>
      </>
    )
  },
  { title: "By", goes: "next", show: (event) => <By of={event} /> }
]
const whatHappened = ({ event_type }: Event) => nameOfEvent(event_type)
const eventFacts = (event: Event) => <EventDetails of={event} />

const Events = ({ search }: Props) => {
  const query = eventFiltersOf(search)
  const onToggle = useToggle()
  const live = useFeed<Event>(
    JSON.stringify([query, search.cursor]),
    (cursor) => run("listEvents", { query: { ...query, ...from(cursor) } }),
    { start: search.cursor, isOpen: search.open !== undefined }
  )
  return (
    <LiveView live={live}>
      {(entries) => (
        <FeedTable
          caption="Events"
          entries={entries}
          what={whatHappened}
          columns={eventColumns}
          facts={eventFacts}
          open={search.open}
          onToggle={onToggle}
        />
      )}
    </LiveView>
  )
}
