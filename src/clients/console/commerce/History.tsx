/** What was changed in a record, and by whom: the newest first. */
import type { Schema } from "effect"
import { useState } from "react"
import type { Success } from "../../client/Client.ts"
import { instantOf, sentenceOf, wordsOf } from "../parts/Format.ts"
import { By } from "../parts/Names.tsx"
import { HistoryPagination } from "../parts/Pagination.tsx"
import { type Column, Loaded, Section, Table, Time } from "../parts/Show.tsx"
import { useAsk } from "../service/Hooks.ts"

type Event = Success<"listEvents">["items"][number]

interface Props {
  readonly kind: "order" | "subscription"
  readonly id: string
  /** What the page calls the fields. */
  readonly labels: Readonly<Record<string, string>>
}

export const History = ({ id, kind, labels }: Props) => {
  const [cursor, setCursor] = useState<number>()
  const events = useAsk("listEvents", {
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
    show: ({ metadata: { changes } }) =>
      changesOf(changes).map(([field, { new: after, old }]) => (
        <div key={field}>
          {labels[field] ?? wordsOf(field)}: {shown(field, old)} → {shown(field, after)}
        </div>
      ))
  },
  { title: "By", goes: "next", show: (event) => <By of={event} /> }
]

interface Change {
  readonly old: Schema.Json
  readonly new: Schema.Json
}

const isChange = (value: unknown): value is Change => typeof value === "object" && value !== null && "new" in value

const changesOf = (changes: Schema.Json | undefined): ReadonlyArray<readonly [field: string, change: Change]> =>
  Object.entries((changes ?? {}) as object).flatMap(([field, value]) => (isChange(value) ? [[field, value]] : []))

const isInstant = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

const shown = (field: string, value: Schema.Json): string => {
  if (value === null || value === "") return "empty"
  if (typeof value === "boolean") return value ? "yes" : "no"
  if (typeof value !== "string") return JSON.stringify(value)
  if (field === "status") return wordsOf(value)
  return isInstant.test(value) ? instantOf(Date.parse(value)) : value
}
