/** Issuing a license. */
import { getRouteApi, Link } from "@tanstack/react-router"
import type { Success } from "../../client/Client.ts"
import type { IssueSearch } from "../batch/IssueSearch.ts"
import { Secret } from "../once/Secret.tsx"
import { email, type FieldsOf, firstDay, flag, lastDay, number, text } from "../parts/Fields.tsx"
import { type Carried, Form } from "../parts/Form.tsx"
import { metadata } from "../parts/Metadata.tsx"
import { Heading } from "../parts/Show.tsx"
import { customer, order, subscription } from "../pickers/Sources.tsx"
import { sendsMail } from "../service/Address.ts"
import { useKeptState } from "../service/Drafts.ts"
import { change, useAsk, useMay } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"
import { OneProduct, policyField, useCarried } from "../tables/OneProduct.tsx"

const route = getRouteApi("/licenses/new")

type Creation = Omit<Payload<"createLicense">, "product_id">

export const IssueLicense = () => {
  const [issued, setIssued] = useKeptState<Success<"createLicense">>("issued")
  const { product_id, ...links }: IssueSearch = route.useSearch()
  const carried = useCarried()
  if (issued !== undefined)
    return (
      <>
        <Heading title="The license is issued" />
        <Secret label="This is its key." what="the key" text={issued.license_key} />
        <Link to="/licenses/$id" params={{ id: issued.license.id }} className="button">
          Open the license
        </Link>
      </>
    )
  return (
    <>
      <Heading title="Issue a license" />
      <OneProduct initial={product_id}>
        {(product) => (
          <IssueForm
            key={product}
            product={product}
            links={product === product_id ? links : {}}
            carried={carried}
            done={setIssued}
          />
        )}
      </OneProduct>
    </>
  )
}

const IssueForm = (props: {
  readonly product: string
  /** What the license is issued for, if the reader comes from there. */
  readonly links: Partial<Creation>
  readonly carried: Carried
  readonly done: (issued: Success<"createLicense">) => void
}) => {
  const may = useMay()
  const policies = useAsk("listPolicies", { params: { id: props.product }, query: { limit: 200, sort: "code" } })
  const fields: FieldsOf<Creation> = {
    policy_id: policyField(props.product, policies),
    ...(may("license:read") ? { customer_id: customer("Customer") } : {}),
    customer_name: text("Customer’s name"),
    customer_email: email("Customer’s e-mail"),
    order_id: order("Order", props.product),
    subscription_id: subscription("Subscription", props.product),
    starts_at: firstDay("Starts on", { hint: "Leave empty to start at once." }),
    expires_at: lastDay("Expires at the end of", { hint: "Leave empty to follow the policy." }),
    max_floating_users: number("Floating seats", { hint: "Leave empty to follow the policy." }),
    max_activations: number("Devices", { hint: "Leave empty to follow the policy." }),
    license_key: text("Key, if the license has one already", {
      hint: "8 to 255 letters, digits and signs without spaces. Leave empty for a new key."
    }),
    ...(sendsMail ? { send_key: flag("Mail the key to the customer") } : {}),
    metadata: metadata()
  }
  return (
    <Form
      fields={fields}
      initial={props.links}
      carried={props.carried}
      name={`Issue ${props.product}`}
      send="Issue"
      once={() => "the key"}
      run={(payload: Creation) => change("createLicense", { payload: { ...payload, product_id: props.product } })}
      done={props.done}
    />
  )
}
