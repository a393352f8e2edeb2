/** One policy, with the features that its licenses get. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import type { Policy } from "../../../vendor/policies/Policy.ts"
import { Action } from "../parts/Dialog.tsx"
import { countOf, daysOf, limitOf, minutesInWords, wordsOf } from "../parts/Format.ts"
import { Metadata } from "../parts/Metadata.tsx"
import { Facts, Heading, Loaded } from "../parts/Show.tsx"
import { PolicyFeatures } from "../quotas/PolicyFeatures.tsx"
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
      <PolicyFeatures policy={policy} />
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
      ["Reminders", remindersOf(policy)],
      ["Grace", daysOf(policy.grace_period_days)],
      ["Validation", `every ${minutesInWords(policy.validation_interval_minutes)}`],
      ["Heartbeat", policy.require_heartbeat ? "needed" : "not needed"],
      ["Offline use", policy.allow_offline_activation ? daysOf(policy.offline_grace_days) : "not allowed"],
      ["Virtual machines", answer(policy.allow_vm)],
      ["Containers", answer(policy.allow_container)],
      ["Borrowed seats", policy.borrow_days_max ? `up to ${countOf(policy.borrow_days_max)} days` : "not allowed"],
      ["Applications see", shownOf(policy)],
      ["Devices removed by customers", `${countOf(policy.self_deactivations_per_month)} in 30 days`],
      ["Transfers", policy.allow_transfer ? limitOf(policy.max_transfers) : "not allowed"]
    ]}
  />
)

const remindersOf = ({ mail_reminders, reminder_days }: Policy): string => {
  if (reminder_days.length === 0) return "none"
  return `${reminder_days.join(", ")} days before${mail_reminders ? ", also by mail" : ""}`
}

/** What signed responses have besides the entitlement. */
const shownOf = ({ show_licensee, show_metadata }: Policy): string =>
  [...(show_licensee ? ["the customer’s name"] : []), ...show_metadata].join(", ") || "nothing more"

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
