/** How deliveries to one webhook go. */
import type { ReactNode } from "react"
import type { WebhookEndpoint } from "../../../ledger/webhooks/Webhook.ts"
import type { WebhookEndpointHealth } from "../../../ledger/webhooks/WebhookHealth.ts"
import { Status } from "../parts/Show.tsx"
import { lastOf, useAsk, useMay } from "../service/Hooks.ts"

export type HealthOf = (id: string) => WebhookEndpointHealth | undefined

const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 })

export const rateOf = (rate: number | undefined): string => (rate === undefined ? "no attempts" : percent.format(rate))

const minutesSeconds = 300
const hourSeconds = 3_600

/** By the same ages and shares as the health of all webhooks in all. */
export const stateOf = (
  { is_active }: Pick<WebhookEndpoint, "is_active">,
  health: WebhookEndpointHealth | undefined
): string => {
  if (!is_active) return "off"
  if (health === undefined) return "active"
  const age = health.oldest_pending_age_seconds ?? 0
  if ((health.success_rate_24h ?? 1) < 0.5 || age >= hourSeconds) return "failing"
  return health.retrying + health.exhausted_24h > 0 || age >= minutesSeconds ? "degraded" : "healthy"
}

interface StateProps {
  readonly of: WebhookEndpoint
  readonly health: WebhookEndpointHealth | undefined
}

export const State = ({ health, of }: StateProps) => (
  <>
    <Status of={stateOf(of, health)} />
    {health?.disabled_reason !== undefined && <small>by the service</small>}
  </>
)

interface HealthProps {
  readonly children: (healthOf: HealthOf) => ReactNode
}

/** Gives the health of each webhook; none to readers who may not read it. */
export const WithHealth = (props: HealthProps) =>
  useMay()("ops:read") ? <Reading {...props} /> : props.children(() => undefined)

const Reading = ({ children }: HealthProps) => {
  const health = lastOf(useAsk("getWebhookHealth", {}))
  return children((id) => health?.per_endpoint.find(({ webhook_id }) => webhook_id === id))
}
