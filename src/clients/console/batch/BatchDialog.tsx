/** Changes many licenses: names the effect and their number, shows how far it is, and at the end what failed and why. */
import { Exit } from "effect"
import { type ReactNode, useEffect, useId, useRef, useState } from "react"
import type { License } from "../../../licensing/model/License.ts"
import { takeFocus } from "../look/Focus.ts"
import { Form } from "../parts/Form.tsx"
import { countOf } from "../parts/Format.ts"
import { Fault } from "../parts/Show.tsx"
import { type Told, tell } from "../service/Failures.ts"
import { type BatchJob, type Done, jobOf } from "./BatchJob.ts"
import { BatchProgress } from "./BatchProgress.tsx"
import { BatchSummary } from "./BatchSummary.tsx"
import type { LicenseChange, Renewal } from "./LicenseChanges.ts"
import { licenseCount } from "./LicenseName.ts"
import { type Filters, readAll } from "./ReadAll.ts"

/** Licenses in one run: more would keep the dialog open for an hour. */
export const batchMax = 10_000

/** The licenses that are chosen, or the filters that choose them. */
export type Chosen = ReadonlyArray<License> | { readonly filters: Filters }

interface Props {
  readonly change: LicenseChange
  readonly chosen: Chosen
  readonly onClose: (isDone: boolean) => void
}

type Step =
  | { readonly at: "reading"; readonly count: number }
  | { readonly at: "asking"; readonly licenses: ReadonlyArray<License> }
  | { readonly at: "running"; readonly job: BatchJob }
  | { readonly at: "done"; readonly job: BatchJob; readonly done: Done }
  | { readonly at: "failed"; readonly told: Told }

export const BatchDialog = ({ change, chosen, onClose }: Props) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const [step, setStep] = useState<Step>(
    "filters" in chosen ? { at: "reading", count: 0 } : { at: "asking", licenses: chosen }
  )
  /** Whether anything may have changed. */
  const begun = useRef(false)
  useEffect(() => dialog.current?.showModal(), [])
  const close = () => dialog.current?.close()
  const isRunning = step.at === "running"
  const begin = (job: BatchJob) => {
    begun.current = true
    setStep({ at: "running", job })
  }
  return (
    <dialog
      ref={dialog}
      className="wide"
      aria-labelledby={id}
      // Closing would end a run half done. A browser closes a dialog at the second Escape without asking.
      closedby={isRunning ? "none" : undefined}
      onKeyDown={(event) => isRunning && event.key === "Escape" && event.preventDefault()}
      onCancel={(event) => isRunning && event.preventDefault()}
      onClose={() => onClose(begun.current)}
    >
      <h2 id={id}>{change.label} licenses</h2>
      {step.at === "reading" && "filters" in chosen && (
        <Loading filters={chosen.filters} count={step.count} onStep={setStep} onClose={close} />
      )}
      {step.at === "asking" && <Asking change={change} licenses={step.licenses} onJob={begin} onClose={close} />}
      {step.at === "running" && (
        <BatchProgress job={step.job} onEnd={(done) => setStep({ at: "done", job: step.job, done })} />
      )}
      {step.at === "done" && <BatchSummary job={step.job} done={step.done} onJob={begin} onClose={close} />}
      {step.at === "failed" && (
        <Closing onClose={close}>
          <Fault told={step.told} />
        </Closing>
      )}
    </dialog>
  )
}

const Closing = ({ children, onClose }: { readonly children: ReactNode; readonly onClose: () => void }) => (
  <>
    {children}
    <div className="row end">
      <button type="button" className="primary" onClick={onClose}>
        Close
      </button>
    </div>
  </>
)

/** Reads the licenses that the filters choose: a change can move them out of the filters. */
const Loading = (props: {
  readonly filters: Filters
  readonly count: number
  readonly onStep: (step: Step) => void
  readonly onClose: () => void
}) => {
  const { count, filters, onClose, onStep } = props
  // biome-ignore lint/correctness/useExhaustiveDependencies: the filters stay the same while a dialog is open.
  useEffect(() => {
    const controller = new AbortController()
    const licenses: Array<License> = []
    const take = (page: ReadonlyArray<License>) => {
      licenses.push(...page)
      onStep({ at: "reading", count: licenses.length })
      if (licenses.length <= batchMax) return
      controller.abort()
      onStep({ at: "failed", told: tooMany })
    }
    void readAll({ filters, signal: controller.signal, take }).then((exit) => {
      if (exit === undefined) return
      onStep(Exit.isFailure(exit) ? { at: "failed", told: tell(exit.cause) } : { at: "asking", licenses })
    })
    return () => controller.abort()
  }, [])
  return (
    <>
      <p role="status">Reading the licenses that the filters choose…</p>
      <p>{countOf(count)}</p>
      <div className="row end">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </>
  )
}

const tooMany: Told = {
  message: `The filters choose more than ${countOf(batchMax)} licenses: narrow them first.`,
  fields: new Map()
}

const Asking = (props: {
  readonly change: LicenseChange
  readonly licenses: ReadonlyArray<License>
  readonly onJob: (job: BatchJob) => void
  readonly onClose: () => void
}) => {
  const { change, licenses, onClose, onJob } = props
  const fit = licenses.filter(change.isFor)
  const others = licenses.length - fit.length
  const left =
    others > 0 &&
    `${countOf(others)} of the ${countOf(licenses.length)} chosen will stay as they are: they are ${change.others}.`
  if (fit.length === 0)
    return (
      <Closing onClose={onClose}>
        <p tabIndex={-1} ref={takeFocus}>
          There is nothing to do: all that are chosen are {change.others}.
        </p>
      </Closing>
    )
  return (
    <>
      <p tabIndex={-1} ref={takeFocus}>
        {change.effect(licenseCount(fit.length))}
      </p>
      {left && <p className="quiet">{left}</p>}
      <Form<Renewal, Renewal>
        fields={change.fields}
        {...(change.initial === undefined ? {} : { initial: change.initial })}
        send={`${change.label} ${licenseCount(fit.length)}`}
        danger={change.danger}
        run={(values) => Promise.resolve(Exit.map(change.check(values), () => values))}
        done={(values) => onJob(jobOf(change, fit, values))}
      >
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </Form>
    </>
  )
}
