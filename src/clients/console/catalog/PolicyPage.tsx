/** One policy, with the features that its licenses get. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import type { Policy } from "../../../vendor/policies/Policy.ts"
import { DependsOnPolicy, FollowsPolicy } from "../consequences/Dependents.tsx"
import { Action } from "../parts/Dialog.tsx"
import { countOf, daysOf, limitOf, minutesInWords, sentenceOf } from "../parts/Format.ts"
import { Metadata } from "../parts/Metadata.tsx"
import { RecordName } from "../parts/Names.tsx"
import { OneRecord } from "../parts/OneRecord.tsx"
import { Facts, Heading, Section, Time } from "../parts/Show.tsx"
import { PolicyFeatures } from "../quotas/PolicyFeatures.tsx"
import { change, run, useAsk, useMay } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"
import { policyFields } from "./PolicyFields.ts"

const route = getRouteApi("/policies/$id")

export const PolicyPage = () => {
  const { id } = route.useParams()
  const policy = useAsk("getPolicy", { params: { id } })
  return (
    <OneRecord of={policy} noun="policy">
      {(policy) => <Screen key={policy.id} policy={policy} />}
    </OneRecord>
  )
}

interface Props {
  readonly policy: Policy
}

const Screen = ({ policy }: Props) => {
  const may = useMay()
  return (
    <>
      <Heading
        title={policy.name}
        about={
          <>
            <span>{sentenceOf(policy.license_type)}</span>
            <code>{policy.code}</code>
          </>
        }
        {...(may("product:write") && { more: <Delete policy={policy} /> })}
      >
        {may("product:write") && <Edit policy={policy} />}
      </Heading>
      <div className="split">
        <div>
          <PolicyFeatures policy={policy} />
          <Section id="limits" title="Limits">
            <Facts of={limitsOf(policy)} />
          </Section>
          <Section id="rules" title="Rules">
            <Facts of={rulesOf(policy)} />
          </Section>
        </div>
        <div>
          <Section id="about" title="About">
            <Facts
              of={[
                ["Product", <RecordName field="product_id" key="product" id={policy.product_id} />],
                [
                  "Licenses",
                  <Link key="licenses" to="/licenses" search={{ policy_id: policy.id }}>
                    Open the list
                  </Link>
                ],
                ["Code", <code key="code">{policy.code}</code>],
                ["Created", <Time key="created" at={policy.created_at} />],
                ["Changed", <Time key="updated" at={policy.updated_at} />]
              ]}
            />
          </Section>
          <Metadata of={policy.metadata} />
        </div>
      </div>
    </>
  )
}

const answer = (allowed: boolean) => (allowed ? "allowed" : "not allowed")

type Rows = ReadonlyArray<readonly [name: string, value: string]>

const limitsOf = (policy: Policy): Rows => [
  ["Devices", limitOf(policy.max_activations)],
  ["Floating seats", policy.max_floating_users ? countOf(policy.max_floating_users) : "off"],
  ["Borrowed seats", policy.borrow_days_max ? `up to ${daysOf(policy.borrow_days_max)}` : "not allowed"],
  ["Transfers", policy.allow_transfer ? limitOf(policy.max_transfers) : "not allowed"],
  ["Offline use", policy.allow_offline_activation ? daysOf(policy.offline_grace_days) : "not allowed"],
  ["Removed by customers", `${countOf(policy.self_deactivations_per_month)} in 30 days`]
]

const rulesOf = (policy: Policy): Rows => [
  ["Term", policy.duration_days === undefined ? "given to each license" : daysOf(policy.duration_days)],
  ["Grace", daysOf(policy.grace_period_days)],
  ["Reminders", remindersOf(policy)],
  ["Validation", `every ${minutesInWords(policy.validation_interval_minutes)}`.replace("every 1 ", "every ")],
  ["Heartbeat", policy.require_heartbeat ? "needed" : "not needed"],
  ["Virtual machines", answer(policy.allow_vm)],
  ["Containers", answer(policy.allow_container)],
  ["Applications see", shownOf(policy)]
]

const remindersOf = ({ mail_reminders, reminder_days }: Policy): string => {
  if (reminder_days.length === 0) return "none"
  return `${reminder_days.join(", ")} days before${mail_reminders ? ", also by mail" : ""}`
}

/** What signed responses have besides the entitlement. */
const shownOf = ({ show_licensee, show_metadata }: Policy): string =>
  [...(show_licensee ? ["the customer’s name"] : []), ...show_metadata].join(", ") || "nothing more"

type Update = Payload<"updatePolicy">

const edited =
  "Limits and rules hold for them at once, except for limits of their own. Features and dates that they have stay as they are."

const Edit = ({ policy }: Props) => {
  const params = { id: policy.id }
  return (
    <Action
      label="Edit"
      send="Save"
      title={`Edit ${policy.name}`}
      effect="A lower limit ends nothing that is in use."
      facts={<FollowsPolicy id={policy.id} told={edited} />}
      fields={policyFields}
      edited={{ record: policy, reread: () => run("getPolicy", { params }) }}
      run={(payload: Update, read) => change("updatePolicy", { params, payload }, read)}
    />
  )
}

const Delete = ({ policy }: Props) => {
  const params = { id: policy.id }
  const navigate = useNavigate()
  return (
    <Action
      label="Delete"
      title={`Delete the policy ${policy.name}`}
      effect="The policy is deleted, with what it says of features."
      danger
      facts={<DependsOnPolicy id={policy.id} />}
      run={() => run("deletePolicy", { params })}
      then={() => void navigate({ to: "/products/$id", params: { id: policy.product_id }, replace: true })}
    />
  )
}
