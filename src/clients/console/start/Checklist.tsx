/** The first steps on an empty service, each by one form. It goes once an application has activated a license. */
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { LicenseType, policyDefaults } from "../../../vendor/policies/Policy.ts"
import { Icon } from "../look/Icon.tsx"
import { Secret } from "../once/Secret.tsx"
import { Action } from "../parts/Dialog.tsx"
import { choice, choicesOf, email, type FieldsOf, lastDay, number, text } from "../parts/Fields.tsx"
import { Section } from "../parts/Show.tsx"
import { service } from "../service/Address.ts"
import { askAgain, change, lastOf, useAsk } from "../service/Hooks.ts"
import { usePolling } from "../service/Polling.ts"
import type { Payload } from "../service/Service.ts"

const first = { limit: 1, sort: "created_at" } as const

export const Checklist = () => {
  const product = lastOf(useAsk("listProducts", { query: first }))?.items[0]
  const license = lastOf(useAsk("listLicenses", { query: { limit: 2 } }))?.items[0]
  return (
    <Section id="start" title="First steps">
      <ol className="steps">
        <Step title="Create a product" told="What you sell, such as an application." isDone={product !== undefined}>
          <CreateProduct />
        </Step>
        {product === undefined ? (
          <>
            <Step title="Create a policy" told="The rules of its licenses: how long, on how many devices." />
            <Step title="Create a feature" told="A part of the product that a license switches on or counts." />
          </>
        ) : (
          <OfProduct product={product.id} />
        )}
        <Step title="Issue a license" told="Its key goes to the customer." isDone={license !== undefined}>
          {product !== undefined && <Issue product={product.id} />}
        </Step>
        <Step title="Activate it in your application" told={<Activation isWaiting={license !== undefined} />} />
      </ol>
    </Section>
  )
}

interface StepProps {
  readonly title: string
  readonly told: ReactNode
  readonly isDone?: boolean
  readonly children?: ReactNode
}

const Step = ({ children, isDone = false, title, told }: StepProps) => (
  <li className={isDone ? "done" : "open"}>
    <span className="tick">{isDone && <Icon name="check" />}</span>
    <div>
      <strong>{title}</strong>
      {isDone ? <span className="hidden">done</span> : <small>{told}</small>}
    </div>
    {/* Not removed: a dialog may still show a key. */}
    <div hidden={isDone}>{children}</div>
  </li>
)

const named = { name: text("Name", { required: true }), code: text("Code", { required: true }) }

type NewProduct = Payload<"createProduct">

const CreateProduct = () => (
  <Action
    label="Create a product"
    effect="Applications name the product by its code."
    primary
    fields={named as FieldsOf<NewProduct>}
    run={(payload: NewProduct) => change("createProduct", { payload })}
  />
)

interface InProduct {
  readonly product: string
}

const OfProduct = ({ product }: InProduct) => {
  const params = { id: product }
  const policy = lastOf(useAsk("listPolicies", { params, query: first }))?.items[0]
  const feature = lastOf(useAsk("listFeatures", { params, query: first }))?.items[0]
  return (
    <>
      <Step
        title="Create a policy"
        told="The rules of its licenses: how long, on how many devices."
        isDone={policy !== undefined}
      >
        <CreatePolicy product={product} />
      </Step>
      <Step
        title="Create a feature"
        told="A part of the product that a license switches on or counts. You can do without."
        isDone={feature !== undefined}
      >
        <CreateFeature product={product} />
      </Step>
    </>
  )
}

type NewPolicy = Payload<"createPolicy">

const policyFields: FieldsOf<NewPolicy> = {
  ...named,
  license_type: choice("Type of its licenses", choicesOf(LicenseType.literals), {
    required: true
  }),
  max_activations: number("Devices", { hint: "0 means unlimited." }),
  duration_days: number("Days of a license’s term", { hint: "Leave empty to give each license its own expiry." })
}

const CreatePolicy = ({ product }: InProduct) => (
  <Action
    label="Create a policy"
    effect="You can change everything later."
    primary
    fields={policyFields}
    initial={{ ...policyDefaults, license_type: "perpetual" }}
    run={(payload: NewPolicy) => change("createPolicy", { params: { id: product }, payload })}
  />
)

type NewFeature = Payload<"createFeature">

const CreateFeature = ({ product }: InProduct) => (
  <Action
    label="Create a feature"
    effect="Policies and licenses can then include it."
    fields={named as FieldsOf<NewFeature>}
    run={(payload: NewFeature) => change("createFeature", { params: { id: product }, payload })}
  />
)

type NewLicense = Omit<Payload<"createLicense">, "product_id" | "policy_id">

const Issue = ({ product }: InProduct) => {
  const policy = lastOf(useAsk("listPolicies", { params: { id: product }, query: first }))?.items[0]
  if (policy === undefined) return null
  const needsExpiry = !["perpetual", "consumption"].includes(policy.license_type) && policy.duration_days === undefined
  const fields: FieldsOf<NewLicense> = {
    customer_name: text("Customer’s name"),
    customer_email: email("Customer’s e-mail"),
    ...(needsExpiry ? { expires_at: lastDay("Expires at the end of", { required: true }) } : {})
  }
  return (
    <Action
      label="Issue a license"
      effect={`It follows the policy ${policy.name}.`}
      primary
      once={() => "the key"}
      fields={fields}
      run={(payload: NewLicense) =>
        change("createLicense", { payload: { ...payload, product_id: product, policy_id: policy.id } })
      }
      done={({ license_key }) => <Secret label="This is its key." what="the key" text={license_key} />}
    />
  )
}

const query = { limit: 1 } as const

/** The line goes, and the list with it, when the first device is there. */
const Activation = ({ isWaiting }: { readonly isWaiting: boolean }) => {
  usePolling("5 seconds", isWaiting, () => askAgain("listAllDevices", { query }))
  return (
    <>
      Send this from your application, or once by hand. <Link to="/activity">Activity</Link> shows what arrives.
      <code className="sample">
        {`curl ${service}/api/v1/license/activate -H "Authorization: License <key>" -H "Content-Type: application/json" -d '{"fingerprint": "my-machine"}'`}
      </code>
    </>
  )
}
