/** What happened to a license: changes, uses and refused calls, the newest first. */
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import type { License } from "../../../licensing/model/License.ts"
import { sentenceOf, wordsOf } from "../parts/Format.ts"
import { HistoryPagination } from "../parts/Pagination.tsx"
import { Loaded, Section, Status, Table, Time } from "../parts/Show.tsx"
import { useAsk } from "../service/Hooks.ts"

export const Timeline = ({ license: { id } }: { readonly license: License }) => {
  const [cursor, setCursor] = useState<number>()
  const query = { license_id: id, limit: 20, ...(cursor === undefined ? {} : { cursor }) }
  const activities = useAsk("listActivities", { query })
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
            <Table
              caption="Timeline"
              rows={items}
              keyOf={({ sequence }) => String(sequence)}
              empty="Nothing has happened yet."
              columns={[
                { title: "What", show: ({ action }) => sentenceOf(action) },
                { title: "When", show: ({ occurred_at }) => <Time at={occurred_at} /> },
                {
                  title: "Result",
                  show: ({ code, result_class }) => (
                    <>
                      <Status of={result_class} />
                      {code !== undefined && <small>{wordsOf(code.toLowerCase())}</small>}
                    </>
                  )
                },
                {
                  title: "By",
                  goes: "next",
                  show: ({ actor_type, source }) => (source === "system" ? "the service" : wordsOf(actor_type))
                },
                { title: "Address", goes: "first", show: ({ ip_address }) => ip_address ?? "–" }
              ]}
            />
            <HistoryPagination cursor={cursor} next={next} onChange={setCursor} />
          </>
        )}
      </Loaded>
    </Section>
  )
}
