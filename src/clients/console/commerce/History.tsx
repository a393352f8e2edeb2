/** What was changed in a record, and by whom: the newest first. */
import { useState } from "react"
import type { Success } from "../../client/Client.ts"
import { differencesOf } from "../audit/Differences.ts"
import { Value } from "../audit/Value.tsx"
import { sentenceOf, wordsOf } from "../parts/Format.ts"
import { By } from "../parts/Names.tsx"
import { HistoryPagination } from "../parts/Pagination.tsx"
import { type Column, Loaded, Section, Table, Time } from "../parts/Show.tsx"
import { useAskPart } from "../service/Hooks.ts"

type Event = Success<"listEvents">["items"][number]

interface Props {
  readonly kind: "order" | "subscription"
  readonly id: string
  /** What the page calls the fields. */
  readonly labels: Readonly<Record<string, string>>
}

export const History = ({ id, kind, labels }: Props) => {
  const [cursor, setCursor] = useState<number>()
  const events = useAskPart("listEvents", {
    query: { resource_type: kind, resource_id: id, limit: 20, ...(cursor === undefined ? {} : { cursor }) }
  })
  return (
    <Section id="history" title="History">
      <Loaded of={events}>
        {({ items, next }) => (
          <>
            <Table
              caption="History"
              rows={items}
              keyOf={({ sequence }) => String(sequence)}
              empty={
                next === undefined
                  ? "Nothing is recorded any more: old events are removed after a while."
                  : "Nothing is found among the latest events: look at earlier ones."
              }
              columns={columns(labels)}
            />
            <HistoryPagination cursor={cursor} next={next} onChange={setCursor} />
          </>
        )}
      </Loaded>
    </Section>
  )
}

const columns = (labels: Props["labels"]): ReadonlyArray<Column<Event>> => [
  { title: "What", show: ({ event_type }) => sentenceOf(event_type) },
  { title: "When", show: ({ created_at }) => <Time at={created_at} /> },
  {
    title: "Changes",
    wraps: true,
    goes: "last",
    show: ({ metadata }) =>
      differencesOf(metadata).map(({ after, before, name }) => (
        <div key={name}>
          {labels[name] ?? wordsOf(name)}: <Value name={name} of={before} isExact /> →{" "}
          <Value name={name} of={after} isExact />
        </div>
      ))
  },
  { title: "By", goes: "next", show: (event) => <By of={event} /> }
]
