/** One policy, with the features that its licenses get. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import { Exit } from "effect"
import { refuse } from "../../../contract/api/Failure.ts"
import type { Policy } from "../../../vendor/policies/Policy.ts"
import type { PolicyFeature } from "../../../vendor/policies/PolicyFeature.ts"
import { Action } from "../parts/Dialog.tsx"
import { type FieldsOf, flag, number } from "../parts/Fields.tsx"
import { countOf, daysOf, limitOf, minutesInWords, wordsOf } from "../parts/Format.ts"
import { listField } from "../parts/ListFields.tsx"
import { Metadata } from "../parts/Metadata.tsx"
import { Facts, Heading, Loaded, Section, Status, Table } from "../parts/Show.tsx"
import { change, run, useAsk, useMay } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"
import { policyFields } from "./PolicyFields.ts"

const route = getRouteApi("/policies/$id")

export const PolicyPage = () => {
  const { id } = route.useParams()
  const policy = useAsk("getPolicy", { params: { id } })
  return <Loaded of={policy}>{(policy) => <Screen key={policy.id} policy={policy} />}</Loaded>
}

interface Props {
  readonly policy: Policy
}

const Screen = ({ policy }: Props) => {
  const may = useMay()
  return (
    <>
      <Heading title={policy.name}>{may("product:write") && <Actions policy={policy} />}</Heading>
      <About policy={policy} />
      <Features policy={policy} />
      <Metadata of={policy.metadata} />
    </>
  )
}

const answer = (allowed: boolean) => (allowed ? "allowed" : "not allowed")

const About = ({ policy }: Props) => (
  <Facts
    of={[
      [
        "Product",
        <Link key="product" to="/products/$id" params={{ id: policy.product_id }}>
          Open
        </Link>
      ],
      [
        "Licenses",
        <Link key="licenses" to="/licenses" search={{ policy_id: policy.id }}>
          Open the list
        </Link>
      ],
      ["Code", <code key="code">{policy.code}</code>],
      ["Type", wordsOf(policy.license_type)],
      ["Devices", limitOf(policy.max_activations)],
      ["Floating seats", policy.max_floating_users ? countOf(policy.max_floating_users) : "off"],
      ["Term", policy.duration_days === undefined ? "given to each license" : daysOf(policy.duration_days)],
      ["Reminders", policy.reminder_days.length === 0 ? "none" : `${policy.reminder_days.join(", ")} days before`],
      ["Grace", daysOf(policy.grace_period_days)],
      ["Validation", `every ${minutesInWords(policy.validation_interval_minutes)}`],
      ["Heartbeat", policy.require_heartbeat ? "needed" : "not needed"],
      ["Offline use", policy.allow_offline_activation ? daysOf(policy.offline_grace_days) : "not allowed"],
      ["Virtual machines", answer(policy.allow_vm)],
      ["Containers", answer(policy.allow_container)],
      ["Borrowed seats", policy.borrow_days_max ? `up to ${countOf(policy.borrow_days_max)} days` : "not allowed"],
      ["Devices removed by customers", `${countOf(policy.self_deactivations_per_month)} in 30 days`],
      ["Transfers", policy.allow_transfer ? limitOf(policy.max_transfers) : "not allowed"]
    ]}
  />
)

type Update = Payload<"updatePolicy">

const Actions = ({ policy }: Props) => {
  const params = { id: policy.id }
  const navigate = useNavigate()
  return (
    <>
      <Action
        label="Edit"
        title="Edit the policy"
        effect="The change holds at once for all licenses of the policy. A lower limit ends nothing that is in use."
        fields={policyFields}
        edited={{ record: policy, reread: () => run("getPolicy", { params }) }}
        run={(payload: Update, read) => change("updatePolicy", { params, payload }, read)}
      />
      <Action
        label="Delete"
        title="Delete the policy"
        effect="The policy is deleted. This works only if no license has it."
        danger
        run={() => run("deletePolicy", { params })}
        then={() => void navigate({ to: "/products/$id", params: { id: policy.product_id }, replace: true })}
      />
    </>
  )
}

type Included = Payload<"setPolicyFeature"> & { readonly feature_id: string }

const includedFields: FieldsOf<Omit<Included, "feature_id">> = {
  enabled: flag("The feature is on"),
  max_consumptions: number("Quota", { hint: "Empty is no limit." }),
  expires_after_days: number("Days until it expires", { hint: "Empty: it does not expire by itself." }),
  expires_with_license: flag("It ends with the license, and follows its renewals")
}

const Features = ({ policy }: Props) => {
  const may = useMay()
  const included = useAsk("listPolicyFeatures", { params: { id: policy.id }, query: { limit: 200 } })
  return (
    <Section
      id="features"
      title="Features that its licenses get"
      actions={may("product:write") && <Include policy={policy} />}
    >
      <Loaded of={included}>
        {({ items }) => (
          <Table
            caption="Features that its licenses get"
            rows={items}
            keyOf={({ feature_id }) => feature_id}
            empty="No feature comes with this policy."
            columns={[
              { title: "Feature", show: ({ feature_name }) => feature_name },
              { title: "State", show: ({ enabled }) => <Status of={enabled ? "active" : "off"} /> },
              {
                title: "Quota",
                number: true,
                show: ({ max_consumptions }) =>
                  max_consumptions === undefined ? "no limit" : countOf(max_consumptions)
              },
              {
                title: "Expires",
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
      effect="Licenses that are issued under this policy or moved to it get the feature. Existing licenses keep what they have."
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
    <div className="row end">
      <Action
        label="Edit"
        name={`Edit ${feature_name}`}
        title={`Edit ${feature_name}`}
        effect="It holds for licenses that are issued from now on."
        fields={includedFields}
        edited={{ record: feature, reread }}
        run={(payload: Omit<Included, "feature_id">, read: object = feature) =>
          change("setPolicyFeature", { params, payload: whole(read as PolicyFeature, payload) })
        }
      />
      <Action
        label="Remove"
        name={`Remove ${feature_name}`}
        effect={`New licenses of this policy do not get ${feature_name}. Existing licenses keep it.`}
        danger
        run={() => change("removePolicyFeature", { params })}
      />
    </div>
  )
}

const expiryOf = ({ expires_after_days, expires_with_license }: PolicyFeature) => {
  if (expires_with_license === true) return "with the license"
  return expires_after_days === undefined ? "never" : `after ${daysOf(expires_after_days)}`
}

const removed = refuse("NOT_FOUND", "Somebody has removed the feature from the policy: include it again.")

/** The operation replaces all fields: others are sent as they were read last, and emptied ones are left out. */
const whole = (
  { enabled, expires_after_days, expires_with_license, max_consumptions, metadata }: PolicyFeature,
  changed: object
): Payload<"setPolicyFeature"> =>
  Object.fromEntries(
    Object.entries({
      ...{ enabled, expires_after_days, expires_with_license, max_consumptions, metadata },
      ...changed
    }).filter(([, value]) => value !== undefined && value !== null)
  )
