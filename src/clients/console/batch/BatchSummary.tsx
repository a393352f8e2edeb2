/** What a run of many changes did: what failed and why, what was not sent, and what can be done next. */
import { Link } from "@tanstack/react-router"
import { csvLine } from "../../../contract/api/Csv.ts"
import { takeFocus } from "../look/Focus.ts"
import { countOf } from "../parts/Format.ts"
import { Table } from "../parts/Show.tsx"
import { inWords, tell } from "../service/Failures.ts"
import { again, type BatchJob, type Done, type Item, movedOf, succeededOf, undoOf, unsentOf } from "./BatchJob.ts"
import type { Failure } from "./BatchRun.ts"
import { licenseCount, licenseName } from "./LicenseName.ts"
import { save } from "./ReadAll.ts"

/** The rest is in the file. */
const shownMax = 100

interface Props {
  readonly job: BatchJob
  readonly done: Done
  readonly onJob: (job: BatchJob) => void
  readonly onClose: () => void
}

export const BatchSummary = ({ done, onClose, onJob, job }: Props) => {
  const { failed } = done
  const succeeded = succeededOf(job, done)
  const unsent = unsentOf(job, done)
  const { takeBack } = job
  return (
    <>
      <p role="status" tabIndex={-1} ref={takeFocus}>
        {licenseCount(succeeded.length)} {succeeded.length === 1 ? "is" : "are"} {job.done}.
        {failed.length > 0 && ` ${countOf(failed.length)} failed.`}
        {unsent.length > 0 && ` ${countOf(unsent.length)} ${unsent.length === 1 ? "was" : "were"} not changed.`}
      </p>
      {failed.length > 0 && <Failures of={failed} />}
      <div className="row end">
        {failed.length > 0 && (
          <>
            <button type="button" onClick={() => save("failed-licenses.csv", fileOf(failed))}>
              Save the failed as CSV
            </button>
            <button type="button" onClick={() => onJob(again(job, done, failed))}>
              Try the failed again
            </button>
          </>
        )}
        {unsent.length > 0 && (
          <button type="button" onClick={() => onJob(again(job, done, unsent))}>
            Continue with the rest
          </button>
        )}
        {takeBack !== undefined && movedOf(job, done).length > 0 && (
          <button type="button" onClick={() => onJob(undoOf(job, done, takeBack))}>
            Undo
          </button>
        )}
        <button type="button" className="primary" onClick={onClose}>
          Close
        </button>
      </div>
    </>
  )
}

type Failed = Failure<Item>

const reasonOf = ({ cause }: Failed) => inWords(tell(cause).message)

const Failures = ({ of }: { readonly of: ReadonlyArray<Failed> }) => (
  <>
    <Table
      caption="Licenses that failed"
      rows={of.slice(0, shownMax)}
      keyOf={({ item }) => item.license.id}
      empty="None."
      columns={[
        {
          title: "License",
          show: ({ item: { license } }) => (
            <Link to="/licenses/$id" params={{ id: license.id }}>
              {licenseName(license)}
            </Link>
          )
        },
        { title: "Why", show: reasonOf }
      ]}
    />
    {of.length > shownMax && <p className="quiet">The file has {countOf(of.length - shownMax)} more.</p>}
  </>
)

const fileOf = (failed: ReadonlyArray<Failed>): ReadonlyArray<string> => [
  csvLine(["id", "license", "why"]),
  ...failed.map((failure) => csvLine([failure.item.license.id, licenseName(failure.item.license), reasonOf(failure)]))
]
