/** Issuing many licenses at once: all, or none if one of them is refused. */
import { getRouteApi } from "@tanstack/react-router"
import { Cause, Exit } from "effect"
import { useRef } from "react"
import { statuses } from "../../../contract/api/ErrorCode.ts"
import { isRefusal } from "../../../contract/api/Failure.ts"
import type { Success } from "../../client/Client.ts"
import { checks, type FieldsOf, firstDay, flag, lastDay, lines, number, text } from "../parts/Fields.tsx"
import { type Carried, Form } from "../parts/Form.tsx"
import { metadata } from "../parts/Metadata.tsx"
import { Heading } from "../parts/Show.tsx"
import { customer, order } from "../pickers/Sources.tsx"
import { sendsMail } from "../service/Address.ts"
import { useDraft, useKeptState } from "../service/Drafts.ts"
import { type Asked, changeOnce, freshKey, lastOf, useAsk, useMay } from "../service/Hooks.ts"
import { withListNote } from "../tables/ListFields.tsx"
import { OneProduct, policyField, useCarried } from "../tables/OneProduct.tsx"
import { BatchKeys, type IssuedBatch } from "./BatchKeys.tsx"
import { type Batch, faultOfBatch, type Licenses, licensesIn, linesOf } from "./BatchLines.ts"
import type { IssueSearch } from "./IssueSearch.ts"

type Issued = Success<"createLicenseBatch">

const route = getRouteApi("/licenses/batch")

export const IssueBatch = () => {
  const [issued, setIssued] = useKeptState<IssuedBatch>("issued")
  const { product_id, ...links }: IssueSearch = route.useSearch()
  const carried = useCarried()
  if (issued !== undefined) return <BatchKeys of={issued} />
  return (
    <>
      <Heading title="Issue a batch" />
      <p className="quiet">All licenses are issued, or none if one of them is refused.</p>
      <OneProduct initial={product_id}>
        {(product) => (
          <BatchForm
            key={product}
            product={product}
            links={product_id === undefined || product === product_id ? links : {}}
            carried={carried}
            done={setIssued}
          />
        )}
      </OneProduct>
    </>
  )
}

interface Props {
  readonly product: string
  /** What the licenses are issued for, if the reader comes from there. */
  readonly links: Partial<Batch>
  readonly carried: Carried
  readonly done: (issued: IssuedBatch) => void
}

const BatchForm = ({ carried, done, links, product }: Props) => {
  const products = useAsk("listProducts", { query: { limit: 200, sort: "code" } })
  const policies = useAsk("listPolicies", { params: { id: product }, query: { limit: 200, sort: "code" } })
  const fields = useFields(product, policies)
  const create = useCreateBatch()
  const sent = useRef<Batch>(undefined)
  const run = (batch: Batch): Promise<Exit.Exit<Issued, unknown>> => {
    const licenses = licensesIn(product, batch)
    if (isRefusal(licenses)) return Promise.resolve(Exit.fail(licenses))
    sent.current = batch
    return create(licenses)
  }
  const nameIn = (records: { readonly items: ReadonlyArray<{ id: string; name: string }> } | undefined, id = "") =>
    records?.items.find((each) => each.id === id)?.name ?? id
  const finish = ({ licenses }: Issued) =>
    done({
      licenses,
      product: nameIn(lastOf(products), product),
      policy: nameIn(lastOf(policies), sent.current?.policy_id),
      ...(sent.current?.name === undefined ? {} : { name: sent.current.name })
    })
  return (
    <Form<Batch, Issued>
      fields={fields}
      initial={links}
      carried={carried}
      name={`Issue ${product}`}
      send="Issue the batch"
      once={() => "the keys"}
      run={run}
      done={finish}
    />
  )
}

const useFields = (product: string, policies: Asked<"listPolicies">): FieldsOf<Batch> => {
  const may = useMay()
  const features = useAsk("listFeatures", { params: { id: product }, query: { limit: 200, sort: "code" } })
  const choices = lastOf(features)?.items ?? []
  return {
    policy_id: policyField(product, policies),
    customers: {
      ...lines("Customers", {
        hint: "One in each line: name, e-mail and, if the license has one already, its key, with commas between. Rows of a spreadsheet can be pasted."
      }),
      read: linesOf
    },
    count: number("Number of licenses", { hint: "Without customers: 1 to 1,000." }),
    name: text("Name of the batch", { hint: "The list of licenses finds them by it. Its place is the metadata." }),
    ...(may("license:read") ? { customer_id: customer("Sold to") } : {}),
    order_id: order("Order", product),
    starts_at: firstDay("Starts on", { hint: "Leave empty to start at once." }),
    expires_at: lastDay("Expires at the end of", { hint: "Leave empty to follow the policy." }),
    max_floating_users: number("Floating seats", { hint: "Leave empty to follow the policy." }),
    max_activations: number("Devices", { hint: "Leave empty to follow the policy." }),
    ...(choices.length > 0
      ? { feature_ids: withListNote(checks("Features besides those of the policy", choices), features) }
      : {}),
    ...(sendsMail ? { send_key: flag("Mail each key to its customer") } : {}),
    metadata: metadata()
  }
}

interface Sending {
  readonly body: string
  readonly key: string
}

/** If no answer came, the same batch is sent under the same key again: it is not issued twice. */
const useCreateBatch = () => {
  const kept: Sending | undefined = useDraft<Sending>("sending", () => open.current)
  const open = useRef<Sending | undefined>(kept)
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
