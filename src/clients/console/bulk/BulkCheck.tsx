/** The check before many licenses are changed: how far it is, what the change would do, and the button that does it. */
import { useEffect } from "react"
import type { BulkJob, BulkJobCreate } from "../../../licensing/bulk/BulkJob.ts"
import { takeFocus } from "../look/Focus.ts"
import { Form } from "../parts/Form.tsx"
import { countOf } from "../parts/Format.ts"
import { licenseCount } from "../parts/LicenseName.ts"
import { Facts, Fault } from "../parts/Show.tsx"
import { tell } from "../service/Failures.ts"
import { useFollowing } from "../service/Following.ts"
import { change as changeBy, run } from "../service/Hooks.ts"
import type { BulkChange } from "./BulkChanges.ts"
import { JobProgress } from "./JobProgress.tsx"
import { FirstRefusals } from "./Refusals.tsx"
import { isOpen } from "./Target.ts"

export const Checking = (props: {
  readonly first: BulkJob
  readonly onEnd: (check: BulkJob) => void
  readonly onClose: () => void
}) => {
  const { first, onClose, onEnd } = props
  const reread = () => run("getBulkJob", { params: { id: first.id } })
  const { failed, latest } = useFollowing({ first, isOpen, reread })
  useEffect(() => {
    if (!isOpen(latest)) onEnd(latest)
  }, [latest, onEnd])
  return (
    <>
      <p role="status" tabIndex={-1} ref={takeFocus}>
        Checking what would change. Nothing is changed yet.
      </p>
      <JobProgress of={latest} />
      {failed !== undefined && <Fault told={tell(failed)} />}
      <div className="row end">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </>
  )
}

interface CheckedProps {
  readonly change: BulkChange
  readonly check: BulkJob
  /** The request that makes the change. */
  readonly payload: typeof BulkJobCreate.Type
  readonly done: (job: BulkJob) => void
  readonly onBack: () => void
  readonly onClose: () => void
}

export const Checked = ({ change, check, done, onBack, onClose, payload }: CheckedProps) => {
  const { changed, refused } = check
  const back = (
    <button type="button" onClick={onBack}>
      Back
    </button>
  )
  return (
    <>
      <p role="status" tabIndex={-1} ref={takeFocus}>
        {summaryOf(check)}
      </p>
      <Facts
        of={[
          ["Would change", countOf(changed)],
          ["Unchanged", countOf(check.unchanged)],
          ["Refused", countOf(refused)]
        ]}
      />
      {refused > 0 && <FirstRefusals of={check} />}
      {check.status === "completed" && changed > 0 ? (
        <>
          {payload.filter !== undefined && (
            <p className="quiet">The matching licenses are looked up again when you begin.</p>
          )}
          <Form
            fields={{}}
            name={`${change.label}: job`}
            send={change.send(licenseCount(changed))}
            danger={change.danger}
            run={() => changeBy("createBulkJob", { payload })}
            done={done}
          >
            {back}
          </Form>
        </>
      ) : (
        <div className="row end">
          {back}
          <button type="button" className="primary" onClick={onClose}>
            Close
          </button>
        </div>
      )}
    </>
  )
}

const summaryOf = ({ changed, failure, matched, status }: BulkJob): string => {
  if (status === "canceled") return "The check was stopped."
  if (status === "failed") return failure ?? "The check failed."
  if (matched === 0) return "No license matches."
  return changed === 0
    ? "There is nothing to do: no license would change."
    : `${countOf(changed)} of ${licenseCount(matched)} would change. Nothing is changed yet.`
}
