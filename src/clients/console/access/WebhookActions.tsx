/** What can be done with a webhook. */
import type { WebhookEndpoint } from "../../../ledger/webhooks/Webhook.ts"
import { Client } from "../../client/Client.ts"
import { Secret } from "../once/Secret.tsx"
import { Action } from "../parts/Dialog.tsx"
import { type ChangeFieldsOf, type FieldsOf, flag, text, url } from "../parts/Fields.tsx"
import { undoOfState, unlessDone } from "../parts/Undo.ts"
import { change, run } from "../service/Hooks.ts"
import { type Payload, send } from "../service/Service.ts"
import { eventTypesField } from "./EventChoice.tsx"

type Creation = Payload<"createWebhook">
type Update = Payload<"updateWebhook">

const shared = {
  name: text("Name", { required: true }),
  url: url("Address", { required: true, hint: "It begins with https:// and can be reached from the service." }),
  event_types: eventTypesField,
  is_active: flag("Events are delivered")
}
const creation: FieldsOf<Creation> = shared
const edit: ChangeFieldsOf<Update> = shared

export const NewWebhook = () => (
  <Action
    label="New webhook"
    send="Create webhook"
    primary
    once={() => "the secret"}
    effect="Events are delivered to the address from now on, signed with a secret that is shown next."
    fields={creation}
    initial={{ is_active: true }}
    run={(payload: Creation) => change("createWebhook", { payload })}
    done={({ secret }) => (
      <Secret label="This is the secret that signs the deliveries." what="the secret" text={secret} />
    )}
  />
)

interface Props {
  readonly webhook: WebhookEndpoint
}

export const EditWebhook = ({ webhook }: Props) => {
  const params = { id: webhook.id }
  return (
    <Action
      label="Edit"
      send="Save"
      name={`Edit ${webhook.name}`}
      effect="The change holds for deliveries from now on. Switching a disabled webhook on delivers to it again."
      fields={edit}
      edited={{ record: webhook, reread: () => run("getWebhook", { params }) }}
      run={(payload: Update, read) => change("updateWebhook", { params, payload }, read)}
    />
  )
}

/** The others, for a menu. */
export const WebhookActions = ({ onDeleted, webhook }: Props & { readonly onDeleted?: () => void }) => {
  const { id, is_active, name } = webhook
  const params = { id }
  const read = send("getWebhook", { params })
  const isTurned = (webhook: WebhookEndpoint) => webhook.is_active !== is_active
  return (
    <>
      <Action
        label="New secret"
        title={`Replace the secret of ${name}`}
        send="Replace secret"
        once={() => "the secret"}
        name={`New secret for ${name}`}
        effect="Deliveries are signed with a new secret. For 24 hours the old one signs them, too, so that receivers can change over."
        run={() => change("updateWebhook", { params, payload: { rotate_secret: true } })}
        done={(result) =>
          "secret" in result ? <Secret label="This is the new secret." what="the secret" text={result.secret} /> : null
        }
      />
      <Action
        label={is_active ? "Switch off" : "Switch on"}
        name={`${is_active ? "Switch off" : "Switch on"} ${name}`}
        effect={
          is_active
            ? "Nothing is delivered until it is switched on again. Events wait for that."
            : "Events that wait are delivered at once, and new ones from now on."
        }
        run={() =>
          unlessDone({ noun: "webhook", read, isDone: isTurned }, "updateWebhook", {
            params,
            payload: { is_active: !is_active }
          })
        }
        undo={(after) => ({
          said: `${name} is switched ${is_active ? "off" : "on"}.`,
          run: undoOfState({
            read,
            isBack: (current) => !isTurned(current),
            isOwn: ({ updated_at }) => "updated_at" in after && updated_at === after.updated_at,
            back: (current) => Client.ifUnchanged(current)(send("updateWebhook", { params, payload: { is_active } }))
          })
        })}
      />
      <hr />
      <Action
        label="Delete"
        name={`Delete ${name}`}
        effect={`Nothing is delivered to ${name} any more, and what waits for it is dropped.`}
        danger
        run={() => (onDeleted === undefined ? change : run)("deleteWebhook", { params })}
        then={() => onDeleted?.()}
      />
    </>
  )
}
