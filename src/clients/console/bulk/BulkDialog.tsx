/**
 * Changes many licenses: asks for what the change needs, lets the service check what it would do, and only then creates the job that
 * does it.
 */
import { useNavigate } from "@tanstack/react-router"
import type { Exit } from "effect"
import { useEffect, useId, useRef, useState } from "react"
import { createPortal } from "react-dom"
import type { BulkJob, BulkJobCreate, BulkParameters } from "../../../licensing/bulk/BulkJob.ts"
import type { Chosen } from "../batch/Chosen.ts"
import { type ChangeFieldsOf, flag, lastDay, text } from "../parts/Fields.tsx"
import { Form } from "../parts/Form.tsx"
import { licenseCount } from "../parts/LicenseName.ts"
import { useKeptState } from "../service/Drafts.ts"
import { run, useAsk } from "../service/Hooks.ts"
import { listField } from "../tables/ListFields.tsx"
import { OneProduct } from "../tables/OneProduct.tsx"
import type { BulkChange } from "./BulkChanges.ts"
import { Checked, Checking } from "./BulkCheck.tsx"
import { productOf, targetOf } from "./Target.ts"

interface Props {
  readonly change: BulkChange
  readonly chosen: Chosen
  readonly onClose: () => void
}

interface Given extends BulkParameters {
  readonly reason?: string
}

type Payload = typeof BulkJobCreate.Type

type Step =
  | { readonly at: "asking" }
  | { readonly at: "checking"; readonly check: BulkJob }
  | { readonly at: "checked"; readonly check: BulkJob }

export const BulkDialog = ({ change, chosen, onClose }: Props) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  const navigate = useNavigate()
  // The list may change behind the dialog.
  const [target] = useState(() => targetOf(chosen))
  const [step, setStep] = useState<Step>({ at: "asking" })
  const [given = change.initial ?? {}, setGiven] = useKeptState<Given>(`${change.label}: values`)
  const payload: Payload = { action: change.action, ...target, ...requestOf(given) }
  useEffect(() => dialog.current?.showModal(), [])
  const close = () => dialog.current?.close()
  const closed = () => {
    if (step.at === "checking") cancelCheck(step.check)
    onClose()
  }
  const ask = {
    change,
    given,
    run: (values: Given) => {
      setGiven(values)
      const checked = { action: change.action, ...target, ...requestOf(values), dry_run: true }
      return run("createBulkJob", { payload: checked })
    },
    done: (check: BulkJob) => setStep({ at: "checking", check }),
    onClose: close
  }
  // Not inside the bar of chosen rows, whose styles are for its own texts and buttons.
  return createPortal(
    <dialog ref={dialog} aria-labelledby={id} onClose={closed}>
      <h2 id={id}>{change.send("licenses")}</h2>
      {step.at === "asking" && (
        <>
          <p>{change.effect}</p>
          <Which payload={payload} />
          {change.action === "policy" ? (
            <OneProduct initial={productOf(chosen)} onCancel={close}>
              {(product) => <AskPolicy key={product} product={product} {...ask} />}
            </OneProduct>
          ) : (
            <Ask {...ask} fields={change.fields ?? {}} />
          )}
        </>
      )}
      {step.at === "checking" && (
        <Checking first={step.check} onEnd={(check) => setStep({ at: "checked", check })} onClose={close} />
      )}
      {step.at === "checked" && (
        <Checked
          change={change}
          check={step.check}
          payload={payload}
          done={({ id }) => void navigate({ to: "/bulk-jobs/$id", params: { id } })}
          onBack={() => setStep({ at: "asking" })}
          onClose={close}
        />
      )}
    </dialog>,
    document.body
  )
}

/** Its result is ignored, because a check changes nothing. */
const cancelCheck = ({ id }: BulkJob): true => {
  void run("cancelBulkJob", { params: { id } })
  return true
}

const requestOf = ({ reason, ...parameters }: Given): Pick<Payload, "parameters" | "reason"> => ({
  ...(Object.keys(parameters).length === 0 ? {} : { parameters }),
  ...(reason === undefined ? {} : { reason })
})

const Which = ({ payload: { confirm_all, license_ids } }: { readonly payload: Payload }) => {
  if (license_ids !== undefined)
    return (
      <p>
        <strong>{licenseCount(license_ids.length)}</strong> {license_ids.length === 1 ? "is" : "are"} chosen.
      </p>
    )
  return confirm_all ? (
    <p className="warned">
      No filter is set: <strong>every license</strong> is chosen.
    </p>
  ) : (
    <p>
      <strong>All licenses that match the filters</strong> are chosen, also those on other pages.
    </p>
  )
}

interface Asking {
  readonly change: BulkChange
  readonly given: Given
  readonly run: (values: Given) => Promise<Exit.Exit<BulkJob, unknown>>
  readonly done: (check: BulkJob) => void
  readonly onClose: () => void
}

const Ask = (props: Asking & { readonly fields: ChangeFieldsOf<BulkParameters> }) => {
  const { change, done, fields, given, onClose, run } = props
  const reason = text("Reason", { hint: "Optional. The job shows it, and the events of the licenses name the job." })
  return (
    <Form<Given, BulkJob>
      fields={{ ...fields, reason }}
      initial={given}
      name={change.label}
      send="Check"
      run={run}
      done={done}
      left={cancelCheck}
    >
      <button type="button" onClick={onClose}>
        Cancel
      </button>
    </Form>
  )
}

const AskPolicy = ({ product, ...asking }: Asking & { readonly product: string }) => {
  const policies = useAsk("listPolicies", { params: { id: product }, query: { limit: 200, sort: "code" } })
  const fields: ChangeFieldsOf<BulkParameters> = {
    policy_id: listField("New policy", policies, { required: true, empty: "The product has no policy." }),
    expires_at: lastDay("Expires at the end of", {
      hint: "Needed if the new policy needs an expiry that a license lacks."
    }),
    keep_features: flag("Keep the features that came with the old policy")
  }
  return <Ask {...asking} fields={fields} />
}
