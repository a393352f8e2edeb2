/** Issuing many licenses at once: all, or none if one of them is refused. */
import { Cause, Exit } from "effect"
import { useRef, useState } from "react"
import { statuses } from "../../../contract/api/ErrorCode.ts"
import { isRefusal } from "../../../contract/api/Failure.ts"
import type { Success } from "../../client/Client.ts"
import { type FieldsOf, firstDay, lastDay, lines, number } from "../parts/Fields.tsx"
import { Form } from "../parts/Form.tsx"
import { listField } from "../parts/ListFields.tsx"
import { OneProduct } from "../parts/OneProduct.tsx"
import { Heading } from "../parts/Show.tsx"
import { changeOnce, freshKey, useAsk } from "../service/Hooks.ts"
import { BatchKeys } from "./BatchKeys.tsx"
import { type Batch, faultOfBatch, type Licenses, licensesIn, linesOf } from "./BatchLines.ts"

type Issued = Success<"createLicenseBatch">

export const IssueBatch = () => {
  const [issued, setIssued] = useState<Issued>()
  if (issued !== undefined) return <BatchKeys of={issued.licenses} />
  return (
    <>
      <Heading title="Issue a batch" />
      <p className="quiet">All licenses are issued, or none if one of them is refused.</p>
      <OneProduct>{(product) => <BatchForm key={product} product={product} done={setIssued} />}</OneProduct>
    </>
  )
}

const BatchForm = ({ done, product }: { readonly product: string; readonly done: (issued: Issued) => void }) => {
  const policies = useAsk("listPolicies", { params: { id: product }, query: { limit: 200, sort: "code" } })
  const create = useCreateBatch()
  const fields: FieldsOf<Batch> = {
    policy_id: listField("Policy", policies, {
      required: true,
      empty: "The product has no policy yet: create one first."
    }),
    customers: {
      ...lines("Customers", {
        hint: "One in each line: name, e-mail and, if the license has one already, its key, with commas between. Rows of a spreadsheet can be pasted."
      }),
      read: linesOf
    },
    count: number("Number of licenses", { hint: "Without customers: 1 to 1,000." }),
    starts_at: firstDay("Starts on", { hint: "Empty: at once." }),
    expires_at: lastDay("Expires at the end of", { hint: "Empty: as the policy says." }),
    max_floating_users: number("Floating seats", { hint: "Empty: as the policy says." }),
    max_activations: number("Devices", { hint: "Empty: as the policy says." })
  }
  const run = (batch: Batch): Promise<Exit.Exit<Issued, unknown>> => {
    const licenses = licensesIn(product, batch)
    return isRefusal(licenses) ? Promise.resolve(Exit.fail(licenses)) : create(licenses)
  }
  return <Form<Batch, Issued> fields={fields} send="Issue the batch" run={run} done={done} />
}

/** If no answer came, the same batch is sent under the same key again: it is not issued twice. */
const useCreateBatch = () => {
  const open = useRef<{ readonly body: string; readonly key: string }>(undefined)
  return (licenses: Licenses): Promise<Exit.Exit<Issued, unknown>> => {
    const body = JSON.stringify(licenses)
    const key = open.current?.body === body ? open.current.key : freshKey()
    open.current = { body, key }
    return changeOnce("createLicenseBatch", { payload: { licenses } }, key).then((exit) => {
      if (Exit.isSuccess(exit)) return exit
      if (isStored(exit.cause)) open.current = undefined
      const fault = faultOfBatch(exit.cause)
      return fault === undefined ? exit : Exit.fail(fault)
    })
  }
}

/** Refusals that the service does not store: an earlier attempt under the same key may have issued the batch. */
const unstored: ReadonlySet<number> = new Set([401, 403, 429])

/** The service gives such a refusal again to the same key, also when its reason is gone. */
const isStored = (cause: Cause.Cause<unknown>): boolean => {
  const error = Cause.squash(cause)
  if (!isRefusal(error) || error.code === "IDEMPOTENCY_IN_PROGRESS") return false
  const status = statuses[error.code]
  return status < 500 && !unstored.has(status)
}
