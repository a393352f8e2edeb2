/** The background workers of a node, and what to do about one that fails. */
import type { OpsSummary } from "../../../insight/ops/Ops.ts"
import { countOf } from "../parts/Format.ts"
import { type Column, Status, Table, Time } from "../parts/Show.tsx"
import { DocsLink } from "./Docs.tsx"

type Worker = OpsSummary["workers"][number]

const remedies = {
  ok: undefined,
  failing: {
    part: "licensingworkerfails",
    text: "Its last pass failed, and it tries again by itself. If that goes on, the log has the cause under its name."
  },
  dead: {
    part: "licensingworkerdown",
    text: "It crashed, or its pass is stuck. The service restarts it after a second; the log has the reason."
  }
} as const

const columns: ReadonlyArray<Column<Worker>> = [
  { title: "Worker", show: ({ name }) => name.replaceAll("-", " ") },
  {
    title: "Status",
    show: ({ status }) => {
      const remedy = remedies[status]
      return (
        <>
          <Status of={status} />
          {remedy !== undefined && (
            <small>
              {remedy.text}{" "}
              <DocsLink page="operations" part={remedy.part}>
                More in the operations guide.
              </DocsLink>
            </small>
          )}
        </>
      )
    }
  },
  { title: "Last success", show: ({ last_success_at }) => <Time at={last_success_at} none="not yet" /> },
  { title: "Last failure", show: ({ last_failure_at }) => <Time at={last_failure_at} none="none" /> },
  { title: "Failures since", number: true, show: ({ failures }) => countOf(failures) },
  { title: "Passes", number: true, show: ({ passes }) => countOf(passes) },
  { title: "Crashes", number: true, show: ({ deaths }) => countOf(deaths) }
]

/** Workers that need attention come first. */
const rankOf = ({ status }: Worker) => ({ dead: 0, failing: 1, ok: 2 })[status]

export const Workers = ({ workers }: { readonly workers: ReadonlyArray<Worker> }) => (
  <Table
    caption="Background workers"
    columns={columns}
    rows={[...workers].sort((one, other) => rankOf(one) - rankOf(other) || (one.name < other.name ? -1 : 1))}
    keyOf={({ name }) => name}
    empty="This node runs no workers: another one does."
  />
)
