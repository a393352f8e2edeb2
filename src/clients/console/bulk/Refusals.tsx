/** The licenses that a bulk job could not change, and why. */
import { useEffect } from "react"
import { csvLine } from "../../../contract/api/Csv.ts"
import type { BulkJob, BulkRefusal } from "../../../licensing/bulk/BulkJob.ts"
import { ExportCsv } from "../batch/ExportCsv.tsx"
import type { PageQuery } from "../batch/ReadAll.ts"
import { countOf } from "../parts/Format.ts"
import { RecordName } from "../parts/Names.tsx"
import { Pagination, usePages } from "../parts/Pagination.tsx"
import { RecordLink } from "../parts/RecordLink.tsx"
import { Loaded, Section, Table } from "../parts/Show.tsx"
import { inWords } from "../service/Failures.ts"
import { askAgain, run, useAsk, useAskPart } from "../service/Hooks.ts"

interface Props {
  readonly of: BulkJob
}

/** So many tell what is wrong; the page of the job has all. */
const firstMax = 5

/** The first refusals of a check. */
export const FirstRefusals = ({ of: { id, refused } }: Props) => {
  const refusals = useAsk("listBulkJobRefusals", { params: { id }, query: { limit: firstMax } })
  return (
    <Loaded of={refusals}>
      {({ items }) => (
        <>
          <ul className="changes">
            {items.map(({ license_id, message }) => (
              <li key={license_id}>
                <RecordName field="license_id" id={license_id} />: {inWords(message)}
              </li>
            ))}
          </ul>
          {refused > items.length && (
            <p>
              <RecordLink field="bulk_job_id" id={id} name={`All ${countOf(refused)} refusals of the check`} />
            </p>
          )}
        </>
      )}
    </Loaded>
  )
}

const linesOf = (refusals: ReadonlyArray<BulkRefusal>) =>
  refusals.map(({ code, license_id, message }) => csvLine([license_id, code, message])).join("")

export const Refusals = ({ of: { id, refused } }: Props) => {
  const { query, ...pages } = usePages()
  const request = { params: { id }, query }
  const refusals = useAskPart("listBulkJobRefusals", request)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a job that goes on has more of them each time.
  useEffect(() => askAgain("listBulkJobRefusals", request), [refused])
  const read = (page: PageQuery) => run("listBulkJobRefusals", { params: { id }, query: page })
  return (
    <Section
      id="refusals"
      title="Refusals"
      actions={
        <ExportCsv
          label="Refusals as CSV"
          file={`${id}-refusals.csv`}
          header={csvLine(["license_id", "code", "message"])}
          linesOf={linesOf}
          read={read}
        />
      }
    >
      <Loaded of={refusals}>
        {(page) => (
          <>
            <Table
              caption="Refusals"
              rows={page.items}
              keyOf={({ license_id }) => license_id}
              empty="None."
              columns={[
                { title: "License", show: ({ license_id }) => <RecordName field="license_id" id={license_id} /> },
                { title: "Why", wraps: true, goes: "last", show: ({ message }) => inWords(message) }
              ]}
            />
            <Pagination page={page} {...pages} />
          </>
        )}
      </Loaded>
    </Section>
  )
}
