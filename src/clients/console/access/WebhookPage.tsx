/** One webhook: whether its deliveries succeed, why not, and what it gets. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import type { WebhookEndpoint } from "../../../ledger/webhooks/Webhook.ts"
import type { WebhookEndpointHealth } from "../../../ledger/webhooks/WebhookHealth.ts"
import { counted, countOf } from "../parts/Format.ts"
import { OneRecord } from "../parts/OneRecord.tsx"
import { Facts, Heading, Section, Time } from "../parts/Show.tsx"
import { useAsk, useMay } from "../service/Hooks.ts"
import { TypeName } from "./EventChoice.tsx"
import { reasonOf } from "./FailureWords.ts"
import { rateOf, State, stateOf, WithHealth } from "./Health.tsx"
import { EditWebhook, WebhookActions } from "./WebhookActions.tsx"

const route = getRouteApi("/webhooks/$id")

export const WebhookPage = () => {
  const { id } = route.useParams()
  const webhook = useAsk("getWebhook", { params: { id } })
  return (
    <OneRecord of={webhook} noun="webhook">
      {(webhook) => (
        <WithHealth>
          {(healthOf) => <Screen key={webhook.id} webhook={webhook} health={healthOf(webhook.id)} />}
        </WithHealth>
      )}
    </OneRecord>
  )
}

interface Props {
  readonly webhook: WebhookEndpoint
  readonly health: WebhookEndpointHealth | undefined
}

const Screen = ({ health, webhook }: Props) => {
  const may = useMay()
  const navigate = useNavigate()
  const gone = () => void navigate({ to: "/webhooks", replace: true })
  return (
    <>
      <Heading
        title={webhook.name}
        about={
          <>
            <State of={webhook} health={health} />
            <span>{webhook.url}</span>
          </>
        }
        {...(may("webhook:write") && { more: <WebhookActions webhook={webhook} onDeleted={gone} /> })}
      >
        {may("webhook:write") && <EditWebhook webhook={webhook} />}
      </Heading>
      <div className="split">
        <div>
          {health !== undefined && <Deliveries webhook={webhook} health={health} />}
          <Section id="events" title="Events">
            {webhook.event_types.length === 0 ? (
              <p>All events, also those of later versions.</p>
            ) : (
              <ul className="plain">
                {webhook.event_types.map((type) => (
                  <li key={type}>
                    <TypeName of={type} />
                  </li>
                ))}
              </ul>
            )}
          </Section>
        </div>
        <div>
          <Section id="about" title="About">
            <Facts
              of={[
                ["Secret", <code key="secret">{webhook.secret_prefix}…</code>],
                ["Last delivery", <Time key="last" at={webhook.last_delivery_at} none="never" />],
                ["Created", <Time key="created" at={webhook.created_at} />],
                ["Changed", <Time key="updated" at={webhook.updated_at} />]
              ]}
            />
          </Section>
        </div>
      </div>
    </>
  )
}

const advice: Readonly<Record<string, string>> = {
  failing:
    "Most deliveries fail. Look at the last failure, repair the receiver, and the deliveries that wait follow by themselves.",
  degraded: "Some deliveries are late or were given up. They are tried again for days.",
  off: "Nothing is delivered. Switch it on again once the receiver works."
}

const disabled = {
  gone: "The service has switched it off: the receiver said that it is gone.",
  exhausted: "The service has switched it off: it failed too often in a row."
} as const

const Deliveries = ({
  health,
  webhook
}: {
  readonly health: WebhookEndpointHealth
  readonly webhook: WebhookEndpoint
}) => {
  const { delivered_24h, disabled_reason, failed_24h } = health
  const attempts = delivered_24h + failed_24h
  const told = advice[stateOf(webhook, health)]
  return (
    <Section id="deliveries" title="Deliveries in the last 24 hours">
      {disabled_reason !== undefined && <p className="failed">{disabled[disabled_reason]}</p>}
      {told !== undefined && <p>{told}</p>}
      {attempts > 0 && (
        <p>
          <strong>{rateOf(health.success_rate_24h)}</strong> of {counted(attempts, "attempt")} succeeded
        </p>
      )}
      <Facts
        of={[
          ["Delivered", countOf(delivered_24h)],
          ["Failed", countOf(failed_24h)],
          ["Given up", countOf(health.exhausted_24h)],
          ["Waiting", countOf(health.pending)],
          ["To be retried", countOf(health.retrying)],
          ...(health.oldest_pending_at === undefined
            ? []
            : ([["Oldest", <Time key="oldest" at={health.oldest_pending_at} />]] as const)),
          ...(webhook.is_active && health.next_attempt_at !== undefined
            ? ([["Next attempt", <Time key="next" at={health.next_attempt_at} />]] as const)
            : []),
          ["Last success", <Time key="success" at={health.last_success_at} none="never" />],
          ["Last failure", <Time key="failure" at={health.last_failure_at} none="never" />],
          ...(health.last_failure_reason === undefined
            ? []
            : ([["Why", reasonOf(health.last_failure_reason)]] as const))
        ]}
      />
    </Section>
  )
}
