/** Edits of a license. */
import type { License } from "../../../licensing/model/License.ts"
import { Consequences } from "../consequences/Consequences.tsx"
import type { Change } from "../consequences/UsePreview.ts"
import { Action } from "../parts/Dialog.tsx"
import { type ChangeFieldsOf, email, type FieldsOf, firstDay, flag, lastDay, number, text } from "../parts/Fields.tsx"
import { metadata } from "../parts/Metadata.tsx"
import { fieldLabels } from "../service/Failures.ts"
import { change, run, useAsk, useMay } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"
import { listField } from "../tables/ListFields.tsx"

interface Props {
  readonly license: License
}

type Update = Payload<"updateLicense">

const editOf = (license: License) => ({
  record: license,
  reread: () => run("getLicense", { params: { id: license.id } })
})

const fields: ChangeFieldsOf<Update> = {
  customer_name: text("Customer’s name"),
  customer_email: email("Customer’s e-mail"),
  starts_at: firstDay(fieldLabels.starts_at),
  expires_at: lastDay(fieldLabels.expires_at),
  maintenance_expires_at: lastDay(fieldLabels.maintenance_expires_at, { hint: "Perpetual licenses only." }),
  metadata: metadata()
}

export const EditLicense = ({ license }: Props) => (
  <Action
    label="Edit"
    send="Save"
    title="Edit the license"
    effect="Applications see the change at their next validation. An emptied field is cleared."
    fields={fields}
    edited={editOf(license)}
    run={(payload: Update, read) => change("updateLicense", { params: { id: license.id }, payload }, read)}
  />
)

type Limits = NonNullable<Change["parameters"]>

const limits: ChangeFieldsOf<Update> = {
  max_floating_users: number("Floating seats"),
  max_activations: number("Devices", { hint: "0 means unlimited." }),
  max_container_instances: number("Container instances", { hint: "0 means unlimited." }),
  max_transfers: number(fieldLabels.max_transfers, { hint: "0 means unlimited." }),
  offline_grace_days: number("Days offline"),
  self_deactivations_per_month: number("Devices removed in 30 days", { hint: "By the customer. 0 is none." })
}

export const ChangeLimits = ({ license }: Props) => (
  <Action
    label="Change limits"
    effect="These limits hold for this license in place of the policy’s; an empty field takes the policy’s. A lower limit ends nothing: what is in use stays until it ends."
    fields={limits}
    edited={editOf(license)}
    preview={(parameters: Update) =>
      Object.keys(parameters).length > 0 && (
        <Consequences id={license.id} change={{ action: "update", parameters: parameters as Limits }} />
      )
    }
    run={(payload: Update, read) => change("updateLicense", { params: { id: license.id }, payload }, read)}
  />
)

type PolicyChange = Payload<"changeLicensePolicy">

export const ChangePolicy = ({ license: { id, policy_id, product_id } }: Props) => {
  const may = useMay()
  return may("product:read") ? <ChangePolicyAction id={id} policy={policy_id} product={product_id} /> : null
}

const ChangePolicyAction = (props: { readonly id: string; readonly policy: string; readonly product: string }) => {
  const policies = useAsk("listPolicies", { params: { id: props.product }, query: { limit: 200, sort: "code" } })
  const fields: FieldsOf<PolicyChange> = {
    policy_id: listField("New policy", policies, {
      required: true,
      without: props.policy,
      empty: "The product has no other policy."
    }),
    expires_at: lastDay(fieldLabels.expires_at, {
      hint: "Needed if the new policy needs an expiry that the license lacks."
    }),
    keep_features: flag("Keep the features that came with the old policy")
  }
  return (
    <Action
      label="Change policy"
      effect="The license follows the new policy at once. Devices and seats stay; those beyond a lower limit stay until they end."
      fields={fields}
      preview={(parameters: PolicyChange) => <Consequences id={props.id} change={{ action: "policy", parameters }} />}
      run={(payload: PolicyChange) => change("changeLicensePolicy", { params: { id: props.id }, payload })}
    />
  )
}

/** The move to the policy that the license has. */
export const ApplyPolicy = ({ license: { id, policy_id } }: Props) => (
  <Action
    label="Apply policy"
    title="Apply the policy"
    effect="The license gets the features and quotas that its policy has now, and loses those that the policy lost. What was set by hand stays, and so do counts."
    preview={() => <Consequences id={id} change={{ action: "apply_policy" }} />}
    run={() => change("changeLicensePolicy", { params: { id }, payload: { policy_id } })}
  />
)
