/** The features that licenses of a policy get. */
import { Exit } from "effect"
import { refuse } from "../../../contract/api/Failure.ts"
import type { Policy } from "../../../vendor/policies/Policy.ts"
import { type PolicyFeature, PolicyFeatureSet } from "../../../vendor/policies/PolicyFeature.ts"
import { FollowsPolicy } from "../consequences/Dependents.tsx"
import { Action } from "../parts/Dialog.tsx"
import { type FieldsOf, flag, number } from "../parts/Fields.tsx"
import { daysOf } from "../parts/Format.ts"
import { Menu } from "../parts/Menu.tsx"
import { Loaded, Section, Status, Table } from "../parts/Show.tsx"
import { change, run, useAsk, useMay } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"
import { listField } from "../tables/ListFields.tsx"
import { allowance, beyondWords, quotaWords } from "./AllowanceFields.ts"

interface Props {
  readonly policy: Policy
}

type Included = Payload<"setPolicyFeature"> & { readonly feature_id: string }

const includedFields: FieldsOf<Omit<Included, "feature_id">> = {
  enabled: flag("The feature is on"),
  ...allowance,
  expires_after_days: number("Days until it expires", { hint: "Leave empty if it does not expire." }),
  expires_with_license: flag("It ends with the license, and follows its renewals")
}

export const PolicyFeatures = ({ policy }: Props) => {
  const may = useMay()
  const included = useAsk("listPolicyFeatures", { params: { id: policy.id }, query: { limit: 200 } })
  return (
    <Section id="features" title="Included features" actions={may("product:write") && <Include policy={policy} />}>
      <Loaded of={included}>
        {({ items }) => (
          <Table
            caption="Included features"
            rows={items}
            keyOf={({ feature_id }) => feature_id}
            empty="No feature comes with this policy."
            columns={[
              { title: "Feature", show: ({ feature_name }) => feature_name },
              { title: "State", show: ({ enabled }) => <Status of={enabled ? "active" : "off"} /> },
              {
                title: "Quota",
                goes: "last",
                show: (feature) => (
                  <>
                    {quotaWords(feature)}
                    <small>{beyondWords(feature)}</small>
                  </>
                )
              },
              {
                title: "Expires",
                goes: "first",
                show: expiryOf
              },
              {
                title: "Actions",
                quiet: true,
                number: true,
                show: (feature) => may("product:write") && <IncludedActions feature={feature} />
              }
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}

const kept =
  "They keep the features and quotas that they have until you choose “Apply policy”: for one on its page, for many in the list of licenses."

const Include = ({ policy }: Props) => {
  const features = useAsk("listFeatures", { params: { id: policy.product_id }, query: { limit: 200, sort: "code" } })
  const fields: FieldsOf<Included> = {
    feature_id: listField("Feature", features, {
      required: true,
      empty: "The product has no feature yet: create one first."
    }),
    ...includedFields
  }
  return (
    <Action
      label="Include a feature"
      effect="Licenses that are issued under this policy or moved to it get the feature."
      facts={<FollowsPolicy id={policy.id} told={kept} />}
      fields={fields}
      initial={{ enabled: true }}
      run={({ feature_id, ...payload }: Included) =>
        change("setPolicyFeature", { params: { id: policy.id, feature_id }, payload })
      }
    />
  )
}

const IncludedActions = ({ feature }: { readonly feature: PolicyFeature }) => {
  const { feature_id, feature_name, policy_id } = feature
  const params = { id: policy_id, feature_id }
  const reread = (): Promise<Exit.Exit<PolicyFeature, unknown>> =>
    run("listPolicyFeatures", { params: { id: policy_id }, query: { limit: 200 } }).then((exit) => {
      if (Exit.isFailure(exit)) return Exit.failCause(exit.cause)
      const current = exit.value.items.find((each) => each.feature_id === feature_id)
      return current === undefined ? Exit.fail(removed) : Exit.succeed(current)
    })
  return (
    <Menu label={`Actions for ${feature_name}`} quiet>
      <Action
        label="Edit"
        send="Save"
        name={`Edit ${feature_name}`}
        effect="It holds for licenses that are issued under this policy or moved to it."
        facts={<FollowsPolicy id={policy_id} told={kept} />}
        fields={includedFields}
        edited={{ record: feature, reread }}
        run={(payload: Omit<Included, "feature_id">, read: object = feature) =>
          change("setPolicyFeature", { params, payload: whole(read as PolicyFeature, payload) })
        }
      />
      <Action
        label="Remove"
        name={`Remove ${feature_name}`}
        effect={`New licenses of this policy do not get ${feature_name}.`}
        danger
        facts={<FollowsPolicy id={policy_id} told={kept} />}
        run={() => change("removePolicyFeature", { params })}
      />
    </Menu>
  )
}

const expiryOf = ({ expires_after_days, expires_with_license }: PolicyFeature) => {
  if (expires_with_license === true) return "with the license"
  return expires_after_days === undefined ? "never" : `after ${daysOf(expires_after_days)}`
}

const removed = refuse("NOT_FOUND", "Somebody has removed the feature from the policy: include it again.")

const names = Object.keys(PolicyFeatureSet.fields) as ReadonlyArray<keyof Payload<"setPolicyFeature">>

/** The operation replaces all fields: others are sent as they were read last, and emptied ones are left out. */
const whole = (read: PolicyFeature, changed: Payload<"setPolicyFeature">): Payload<"setPolicyFeature"> => {
  const fields = { ...read, ...changed }
  return Object.fromEntries(names.map((name) => [name, fields[name]]).filter(([, value]) => value != null))
}
