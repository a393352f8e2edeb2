/** The health of webhook deliveries by endpoint. */

import type { WebhookEndpointHealth, WebhookHealth } from "../../../ledger/webhooks/WebhookHealth.ts"
import { reasonOf } from "../access/FailureWords.ts"
import { stateOf } from "../access/Health.tsx"
import { countOf } from "../parts/Format.ts"
import { RecordLink } from "../parts/RecordLink.tsx"
import { Facts, Status, Table, Time } from "../parts/Show.tsx"
import { DocsLink } from "./Docs.tsx"

export const Endpoints = ({
  of: { endpoints, oldest_pending_at, per_endpoint, status, success_rate_24h }
}: {
  readonly of: WebhookHealth
}) => (
  <>
    <Facts
      of={[
        ["State", <Status key="status" of={status} />],
        [
          "Attempts that succeeded in 24 hours",
          success_rate_24h === undefined ? "none yet" : share.format(success_rate_24h)
        ],
        ["Oldest waiting", <Time key="oldest" at={oldest_pending_at} none="none" />]
      ]}
    />
    <Table
      caption="Webhook endpoints"
      rows={per_endpoint}
      keyOf={({ webhook_id }) => webhook_id}
      empty="There is no webhook yet."
      columns={[
        {
          title: "Webhook",
          show: ({ name, webhook_id }) => <RecordLink field="webhook_id" id={webhook_id} name={name} />
        },
        { title: "State", show: (endpoint) => <EndpointState of={endpoint} /> },
        { title: "Waiting", number: true, show: ({ pending }) => countOf(pending) },
        { title: "Retrying", number: true, goes: "next", show: ({ retrying }) => countOf(retrying) },
        {
          title: "Delivered in 24 hours",
          number: true,
          goes: "first",
          show: ({ delivered_24h }) => countOf(delivered_24h)
        },
        { title: "Failed attempts", number: true, goes: "last", show: ({ failed_24h }) => countOf(failed_24h) },
        { title: "Given up", number: true, goes: "first", show: ({ exhausted_24h }) => countOf(exhausted_24h) }
      ]}
    />
    {endpoints.total > per_endpoint.length && (
      <p className="quiet">
        The newest {countOf(per_endpoint.length)} of {countOf(endpoints.total)} webhooks. The state and the share are of
        all.
      </p>
    )}
    {status !== "healthy" && (
      <p className="quiet">
        A receiver that fails is tried again for days.{" "}
        <DocsLink page="operations" part="licensingdeliverieslate">
          The operations guide says what to look at.
        </DocsLink>
      </p>
    )}
  </>
)

const share = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 })

const disabled = {
  gone: "The receiver said that it is gone. Switch it on again under Webhooks once it is back.",
  exhausted: "It failed too often in a row. Switch it on again under Webhooks once the receiver works."
} as const

const EndpointState = ({ of }: { readonly of: WebhookEndpointHealth }) => (
  <>
    <Status of={stateOf(of, of)} />
    {of.disabled_reason !== undefined && <small>{disabled[of.disabled_reason]}</small>}
    {of.is_active && of.last_failure_reason !== undefined && <small>{reasonOf(of.last_failure_reason)}</small>}
  </>
)
