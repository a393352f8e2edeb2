/** How far a bulk job is. */
import type { BulkJob } from "../../../licensing/bulk/BulkJob.ts"
import { countOf } from "../parts/Format.ts"
import { licenseCount } from "../parts/LicenseName.ts"
import { doneOf } from "./Target.ts"

/** A screen reader says how far it is after each tenth. */
const tenths = 10

export const JobProgress = ({ of: job }: { readonly of: BulkJob }) => {
  const done = doneOf(job)
  const share = job.matched === 0 ? 1 : done / job.matched
  return (
    <div>
      <progress value={share} aria-label="Licenses that were looked at" />
      <p>
        {countOf(done)} of {licenseCount(job.matched)}
      </p>
      <p className="hidden" role="status">
        {Math.floor(share * tenths) * (100 / tenths)} %
      </p>
    </div>
  )
}
