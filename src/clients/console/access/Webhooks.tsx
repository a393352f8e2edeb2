/** Webhook endpoints: where events are delivered to. */
import { getRouteApi } from "@tanstack/react-router"
import type { WebhookEndpoint } from "../../../ledger/webhooks/Webhook.ts"
import { Secret } from "../once/Secret.tsx"
import { Action } from "../parts/Dialog.tsx"
import { type ChangeFieldsOf, type FieldsOf, flag, lines, text, url } from "../parts/Fields.tsx"
import { List, pageOf } from "../parts/List.tsx"
import { type Column, Heading, Status, Time } from "../parts/Show.tsx"
import { change, run, useAsk, useMay } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"

const route = getRouteApi("/webhooks")

type Creation = Payload<"createWebhook">
type Update = Payload<"updateWebhook">

const shared = {
  name: text("Name", { required: true }),
  url: url("Address", { required: true, hint: "It begins with https:// and can be reached from the service." }),
  event_types: lines("Events", { hint: "One in each line, as license.created or license.*. Empty: all." }),
  is_active: flag("Events are delivered")
}
const creation: FieldsOf<Creation> = shared
const edit: ChangeFieldsOf<Update> = shared

const columns: ReadonlyArray<Column<WebhookEndpoint>> = [
  {
    title: "Name",
    show: ({ name, url }) => (
      <>
        {name}
        <small>{url}</small>
      </>
    )
  },
  { title: "State", show: ({ is_active }) => <Status of={is_active ? "active" : "off"} /> },
  { title: "Events", show: ({ event_types }) => (event_types.length === 0 ? "all" : event_types.join(", ")) },
  { title: "Secret", show: ({ secret_prefix }) => <code>{secret_prefix}…</code> },
  { title: "Last delivery", show: ({ last_delivery_at }) => <Time at={last_delivery_at} none="never" /> },
  { title: "Created", sort: "created_at", show: ({ created_at }) => <Time at={created_at} only="day" /> },
  { title: "Actions", quiet: true, number: true, show: (webhook) => <WebhookActions webhook={webhook} /> }
]

export const Webhooks = () => {
  const search = route.useSearch()
  const { cursor: _, ...sort } = search
  const may = useMay()
  const page = useAsk("listWebhooks", { query: { ...sort, ...pageOf(search) } })
  return (
    <>
      <Heading title="Webhooks">
        {may("webhook:write") && (
          <Action
            label="New webhook"
            primary
            effect="Events are delivered to the address from now on, signed with a secret that is shown next."
            fields={creation}
            initial={{ is_active: true }}
            run={(payload: Creation) => change("createWebhook", { payload })}
            done={({ secret }) => (
              <Secret label="This is the secret that signs the deliveries." what="the secret" text={secret} />
            )}
          />
        )}
      </Heading>
      <List
        caption="Webhooks"
        noun="webhook"
        empty="There is no webhook yet."
        columns={columns}
        page={page}
        search={search}
      />
    </>
  )
}

const WebhookActions = ({ webhook }: { readonly webhook: WebhookEndpoint }) => {
  const params = { id: webhook.id }
  const { name } = webhook
  return (
    <div className="row end">
      <Action
        label="Edit"
        name={`Edit ${name}`}
        title={`Edit ${name}`}
        effect="The change holds for deliveries from now on. Switching a disabled webhook on delivers to it again."
        fields={edit}
        edited={{ record: webhook, reread: () => run("getWebhook", { params }) }}
        run={(payload: Update, read) => change("updateWebhook", { params, payload }, read)}
      />
      <Action
        label="New secret"
        name={`New secret for ${name}`}
        effect="Deliveries are signed with a new secret. For 24 hours the old one signs them, too, so that receivers can change over."
        run={() => change("updateWebhook", { params, payload: { rotate_secret: true } })}
        done={(result) =>
          "secret" in result ? <Secret label="This is the new secret." what="the secret" text={result.secret} /> : null
        }
      />
      <Action
        label="Delete"
        name={`Delete ${name}`}
        effect={`Nothing is delivered to ${name} any more, and what waits for it is dropped.`}
        danger
        run={() => change("deleteWebhook", { params })}
      />
    </div>
  )
}
