/** API keys: whose tokens may call the management API, and what they may do. */
import { getRouteApi } from "@tanstack/react-router"
import type { ApiKey } from "../../../vendor/apiKeys/ApiKey.ts"
import { Secret } from "../once/Secret.tsx"
import { Action } from "../parts/Dialog.tsx"
import { Menu } from "../parts/Menu.tsx"
import { type Column, Heading, Status, Time } from "../parts/Show.tsx"
import { change, lastOf, run, useAsk, useMay } from "../service/Hooks.ts"
import { now } from "../service/Service.ts"
import { List, pageOf } from "../tables/List.tsx"
import {
  type Creation,
  changeFields,
  creationFields,
  type Products,
  type Update,
  unlessContradicting
} from "./KeyFields.ts"
import { wordsOfScopes } from "./Scopes.ts"

const route = getRouteApi("/api-keys")

export const ApiKeys = () => {
  const search = route.useSearch()
  const may = useMay()
  const page = useAsk("listApiKeys", { query: pageOf(search) })
  const products = useAsk("listProducts", { query: { limit: 200, sort: "code" } })
  return (
    <>
      <Heading title="API keys">
        {may("admin") && (
          <Action
            label="New API key"
            send="Create API key"
            primary
            once={() => "the token"}
            effect="Anyone with this token gets the selected scopes. Select only what is needed."
            fields={creationFields(products)}
            initial={{ scopes: ["license:read"] }}
            run={(payload: Creation) => unlessContradicting(payload, () => change("createApiKey", { payload }))}
            done={({ token }) => <Secret label="This is the token." what="the token" text={token} />}
          />
        )}
      </Heading>
      <List
        caption="API keys"
        noun="API key"
        empty="There is no API key."
        columns={columnsWith(products)}
        page={page}
        search={search}
      />
    </>
  )
}

const columnsWith = (products: Products): ReadonlyArray<Column<ApiKey>> => [
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
  { title: "State", show: (key) => <State of={key} /> },
  {
    title: "May",
    goes: "next",
    show: ({ product_ids, scopes }) => (
      <>
        {wordsOfScopes(scopes)}
        {product_ids !== undefined && <small>only for {product_ids.map(nameIn(products)).join(", ")}</small>}
      </>
    )
  },
  {
    title: "Used from",
    goes: "first",
    show: ({ allowed_cidrs }) => (allowed_cidrs.length === 0 ? "any network" : allowed_cidrs.join(", "))
  },
  { title: "Last used", goes: "last", show: ({ last_used_at }) => <Time at={last_used_at} none="never used" /> },
  { title: "Expires", goes: "next", show: ({ expires_at }) => <Time at={expires_at} only="day" none="never" /> },
  {
    title: "Created",
    sort: "created_at",
    goes: "first",
    show: ({ created_at }) => <Time at={created_at} only="day" />
  },
  { title: "Actions", quiet: true, number: true, show: (key) => <KeyActions of={key} products={products} /> }
]

const nameIn = (products: Products) => (id: string) =>
  lastOf(products)?.items.find((product) => product.id === id)?.name ?? id

/** Leaves time to replace the key where it is used. */
const soonMillis = 14 * 86_400_000

const State = ({ of: { expires_at, is_active } }: { readonly of: ApiKey }) => {
  if (!is_active) return <Status of="off" />
  const left = expires_at === undefined ? Number.POSITIVE_INFINITY : expires_at - now()
  if (left <= 0) return <Status of="expired" />
  return left > soonMillis ? <Status of="active" /> : <span className="status soon">Expires soon</span>
}

const KeyActions = ({ of, products }: { readonly of: ApiKey; readonly products: Products }) => {
  const params = { id: of.id }
  return (
    <Menu label={`Actions for ${of.name}`} quiet>
      <Action
        label="Edit"
        send="Save"
        name={`Edit ${of.name}`}
        effect="The change holds for the next request with the key’s token."
        fields={changeFields(products, of)}
        edited={{ record: of, reread: () => run("getApiKey", { params }) }}
        run={(payload: Update, read) =>
          unlessContradicting({ ...of, ...read, ...payload }, () => change("updateApiKey", { params, payload }, read))
        }
      />
      <hr />
      <Action
        label="Revoke"
        name={`Revoke ${of.name}`}
        effect={`The token of ${of.name} stops working at once and for ever.`}
        danger
        run={() => change("deleteApiKey", { params })}
      />
    </Menu>
  )
}
