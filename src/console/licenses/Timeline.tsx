/** What happened to a license: changes, uses and refused calls, the newest first. */
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import type { License } from "../../licenses/model/License.ts"
import { wordsOf } from "../parts/Format.ts"
import { Loaded, Section, Status, Table, Time } from "../parts/Show.tsx"
import { useAsk } from "../service/Hooks.ts"
import { Earlier } from "./More.tsx"

export const Timeline = ({ license: { id } }: { readonly license: License }) => {
  const [cursor, setCursor] = useState<number>()
  const query = { license_id: id, limit: 20, ...(cursor === undefined ? {} : { cursor }) }
  const activities = useAsk("listActivities", { query })
  return (
    <Section
      id="timeline"
      title="Timeline"
      actions={
        <Link to="/licenses/$id/audit" params={{ id }} className="button">
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
                { title: "What", show: ({ action }) => wordsOf(action) },
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
                  show: ({ actor_type, source }) => (source === "system" ? "the service" : wordsOf(actor_type))
                },
                { title: "Address", show: ({ ip_address }) => ip_address ?? "–" }
              ]}
            />
            <Earlier cursor={cursor} next={next} onChange={setCursor} />
          </>
        )}
      </Loaded>
    </Section>
  )
}
