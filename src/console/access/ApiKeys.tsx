/** API keys: whose tokens may call the management API, and what they may do. */
import { getRouteApi } from "@tanstack/react-router"
import type { ApiKey } from "../../auth/apiKeys/ApiKey.ts"
import { ManagementScope } from "../../auth/Scope.ts"
import { Action, Secret } from "../parts/Dialog.tsx"
import { type ChangeFieldsOf, checks, day, type FieldsOf, flag, lines, text } from "../parts/Fields.tsx"
import { List, pageOf } from "../parts/List.tsx"
import { type Column, Heading, Status, Time } from "../parts/Show.tsx"
import { change, run, useAsk } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"

const route = getRouteApi("/api-keys")

const meanings: Readonly<Record<ManagementScope, string>> = {
  admin: "Everything, also API keys",
  "product:read": "Read products, policies and features",
  "product:write": "Change products, policies and features",
  "license:read": "Read licenses, customers and devices",
  "license:write": "Issue and change licenses and customers",
  "device:write": "Reset and block devices",
  "event:read": "Read events",
  "ops:read": "See how the service works",
  "report:read": "Read reports and activities",
  "report:export": "Export reports",
  "webhook:write": "Read and change webhooks"
}

const scopes = ManagementScope.literals.map((id) => ({ id, name: meanings[id] }))

type Creation = Payload<"createApiKey">
type Update = Payload<"updateApiKey">

const shared = {
  name: text("Name", { required: true, hint: "Who or what uses the key." }),
  scopes: checks("What the key may do", scopes),
  allowed_cidrs: lines("Networks that it may be used from", {
    hint: "One in each line, as 203.0.113.0/24. Empty: any."
  }),
  expires_at: day("Expires at the end of", { hint: "Empty: never." })
}
const creation: FieldsOf<Creation> = shared
const edit: ChangeFieldsOf<Update> = { ...shared, is_active: flag("The key works") }

const columns: ReadonlyArray<Column<ApiKey>> = [
  {
    title: "Name",
    show: ({ key_prefix, name }) => (
      <>
        {name}
        <small>
          <code>{key_prefix}…</code>
        </small>
      </>
    )
  },
  { title: "State", show: ({ is_active }) => <Status of={is_active ? "active" : "off"} /> },
  { title: "May", show: (key) => key.scopes.map((scope) => meanings[scope]).join("; ") },
  { title: "Last used", show: ({ last_used_at }) => <Time at={last_used_at} none="never" /> },
  { title: "Expires", show: ({ expires_at }) => <Time at={expires_at} only="day" none="never" /> },
  { title: "Created", sort: "created_at", show: ({ created_at }) => <Time at={created_at} only="day" /> },
  { title: "Actions", quiet: true, number: true, show: (key) => <KeyActions of={key} /> }
]

export const ApiKeys = () => {
  const search = route.useSearch()
  const { cursor: _, ...sort } = search
  const page = useAsk("listApiKeys", { query: { ...sort, ...pageOf(search) } })
  return (
    <>
      <Heading title="API keys">
        <Action
          label="New API key"
          primary
          effect="Whoever has the key’s token may do what is chosen here. Choose no more than is needed."
          fields={creation}
          initial={{ scopes: ["license:read"] }}
          run={(payload: Creation) => change("createApiKey", { payload })}
          done={({ token }) => <Secret label="This is the token." text={token} />}
        />
      </Heading>
      <List
        caption="API keys"
        noun="API key"
        empty="There is no API key."
        columns={columns}
        page={page}
        search={search}
      />
    </>
  )
}

const KeyActions = ({ of }: { readonly of: ApiKey }) => {
  const params = { id: of.id }
  return (
    <div className="row end">
      <Action
        label="Edit"
        name={`Edit ${of.name}`}
        title={`Edit ${of.name}`}
        effect="The change holds for the next request with the key’s token."
        fields={edit}
        edited={{ record: of, reread: () => run("getApiKey", { params }) }}
        run={(payload: Update, read) => change("updateApiKey", { params, payload }, read)}
      />
      <Action
        label="Revoke"
        name={`Revoke ${of.name}`}
        effect={`The token of ${of.name} stops working at once and for ever.`}
        danger
        run={() => change("deleteApiKey", { params })}
      />
    </div>
  )
}
