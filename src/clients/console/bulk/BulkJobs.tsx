/** The list of bulk jobs. */
import { getRouteApi, Link } from "@tanstack/react-router"
import { BulkJob } from "../../../licensing/bulk/BulkJob.ts"
import { Empty } from "../parts/Empty.tsx"
import { choicesOf } from "../parts/Fields.tsx"
import { countOf } from "../parts/Format.ts"
import { Actor } from "../parts/Names.tsx"
import { type Column, Heading, Status, Time } from "../parts/Show.tsx"
import { useAsk } from "../service/Hooks.ts"
import { Filter, List, pageOf, useNarrow } from "../tables/List.tsx"
import { bulkChanges, changeOf, nameOfJob } from "./BulkChanges.ts"
import type { BulkSearch } from "./BulkSearch.ts"

const route = getRouteApi("/bulk-jobs")
const actions = bulkChanges.map(({ action, label }) => ({ id: action, name: label }))
const statuses = choicesOf(BulkJob.fields.status.literals)

const columns: ReadonlyArray<Column<BulkJob>> = [
  {
    title: "Change",
    show: (job) => (
      <>
        <Link to="/bulk-jobs/$id" params={{ id: job.id }}>
          {nameOfJob(job, changeOf(job.action).label)}
        </Link>
        {job.reason !== undefined && <small>{job.reason}</small>}
      </>
    )
  },
  { title: "Status", show: ({ status }) => <Status of={status} /> },
  { title: "Licenses", number: true, goes: "next", show: ({ matched }) => countOf(matched) },
  { title: "Changed", number: true, goes: "first", show: ({ changed, dry_run }) => (dry_run ? "–" : countOf(changed)) },
  { title: "Refused", number: true, goes: "next", show: ({ refused }) => countOf(refused) },
  {
    title: "By",
    goes: "first",
    show: ({ created_by, created_by_name }) => <Actor id={created_by} name={created_by_name} />
  },
  { title: "Created", sort: "created_at", goes: "last", show: ({ created_at }) => <Time at={created_at} /> }
]

export const BulkJobs = () => {
  const search: BulkSearch = route.useSearch()
  const page = useAsk("listBulkJobs", { query: pageOf(search) })
  const narrow = useNarrow()
  return (
    <>
      <Heading title="Bulk jobs">
        <Link to="/licenses" className="button">
          All licenses
        </Link>
      </Heading>
      <search className="row filters" aria-label="Filters">
        <Filter label="Change" value={search.action} choices={actions} onChange={(action) => narrow({ action })} />
        <Filter label="Status" value={search.status} choices={statuses} onChange={(status) => narrow({ status })} />
      </search>
      <List
        caption="Bulk jobs"
        noun="bulk job"
        icon="table"
        empty={
          search.action === undefined && search.status === undefined ? (
            <Empty
              icon="table"
              title="No bulk jobs yet"
              hint="A bulk job changes many licenses. Choose some in the list of licenses to begin one. Jobs that have ended are kept for 90 days."
            />
          ) : (
            <Empty icon="search" title="No bulk job matches" hint="Remove a filter." />
          )
        }
        columns={columns}
        page={page}
        search={search}
      />
    </>
  )
}
