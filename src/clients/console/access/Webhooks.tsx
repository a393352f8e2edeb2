/** Webhook endpoints: where events are delivered to, and whether that works. */
import { getRouteApi, Link } from "@tanstack/react-router"
import type { WebhookEndpoint } from "../../../ledger/webhooks/Webhook.ts"
import { Empty } from "../parts/Empty.tsx"
import { countOf } from "../parts/Format.ts"
import { Menu } from "../parts/Menu.tsx"
import { type Column, Heading, Time } from "../parts/Show.tsx"
import { useAsk, useMay } from "../service/Hooks.ts"
import { List, pageOf } from "../tables/List.tsx"
import { nameOfType } from "./EventChoice.tsx"
import { type HealthOf, rateOf, State, WithHealth } from "./Health.tsx"
import { EditWebhook, NewWebhook, WebhookActions } from "./WebhookActions.tsx"

const route = getRouteApi("/webhooks")

const healthColumns = (healthOf: HealthOf): ReadonlyArray<Column<WebhookEndpoint>> => [
  {
    title: "Succeeded in 24 hours",
    goes: "next",
    show: ({ id }) => {
      const health = healthOf(id)
      return health === undefined ? "–" : rateOf(health.success_rate_24h)
    }
  },
  {
    title: "Waiting",
    goes: "next",
    number: true,
    show: ({ id }) => {
      const pending = healthOf(id)?.pending
      return pending === undefined ? "–" : countOf(pending)
    }
  }
]

const columnsWith = (healthOf: HealthOf, mayReadHealth: boolean): ReadonlyArray<Column<WebhookEndpoint>> => [
  {
    title: "Name",
    show: ({ id, name, url }) => (
      <>
        <Link to="/webhooks/$id" params={{ id }}>
          {name}
        </Link>
        <small>{url}</small>
      </>
    )
  },
  { title: "State", show: (webhook) => <State of={webhook} health={healthOf(webhook.id)} /> },
  ...(mayReadHealth ? healthColumns(healthOf) : []),
  {
    title: "Events",
    goes: "first",
    show: ({ event_types }) =>
      event_types.length === 0 ? (
        "all"
      ) : (
        <span title={event_types.join(", ")}>{event_types.map(nameOfType).join(", ")}</span>
      )
  },
  {
    title: "Last delivery",
    goes: "last",
    show: ({ last_delivery_at }) => <Time at={last_delivery_at} none="nothing delivered" />
  },
  {
    title: "Created",
    sort: "created_at",
    goes: "first",
    show: ({ created_at }) => <Time at={created_at} only="day" />
  },
  {
    title: "Actions",
    quiet: true,
    number: true,
    show: (webhook) => (
      <Menu label={`Actions for ${webhook.name}`} quiet>
        <EditWebhook webhook={webhook} />
        <WebhookActions webhook={webhook} />
      </Menu>
    )
  }
]

export const Webhooks = () => {
  const search = route.useSearch()
  const may = useMay()
  const page = useAsk("listWebhooks", { query: pageOf(search) })
  return (
    <>
      <Heading title="Webhooks">{may("webhook:write") && <NewWebhook />}</Heading>
      <WithHealth>
        {(healthOf) => (
          <List
            caption="Webhooks"
            noun="webhook"
            empty={
              <Empty
                icon="webhook"
                title="No webhooks yet"
                hint="A webhook tells another system at once what happens here: a license that was issued, renewed or has expired."
              />
            }
            columns={columnsWith(healthOf, may("ops:read"))}
            page={page}
            search={search}
          />
        )}
      </WithHealth>
    </>
  )
}
