/** The list of products. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import type { Product } from "../../../vendor/products/Product.ts"
import { Action } from "../parts/Dialog.tsx"
import { Empty } from "../parts/Empty.tsx"
import { type FieldsOf, text } from "../parts/Fields.tsx"
import { metadata } from "../parts/Metadata.tsx"
import { type Column, Heading, Time } from "../parts/Show.tsx"
import { change, useAsk, useMayForAll } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"
import { List, pageOf } from "../tables/List.tsx"

const route = getRouteApi("/products")

type Creation = Payload<"createProduct">

export const productFields: FieldsOf<Creation> = {
  name: text("Name", { required: true }),
  code: text("Code", { required: true, hint: "Lower-case letters, digits, dots and dashes; no other product has it." }),
  metadata: metadata()
}

const columns: ReadonlyArray<Column<Product>> = [
  {
    title: "Name",
    show: ({ id, name }) => (
      <Link to="/products/$id" params={{ id }}>
        {name}
      </Link>
    )
  },
  { title: "Code", sort: "code", goes: "last", show: ({ code }) => <code>{code}</code> },
  { title: "Created", sort: "created_at", show: ({ created_at }) => <Time at={created_at} only="day" /> }
]

export const Products = () => {
  const search = route.useSearch()
  const mayForAll = useMayForAll()
  const navigate = useNavigate()
  const page = useAsk("listProducts", { query: pageOf(search) })
  return (
    <>
      <Heading title="Products">
        {mayForAll("product:write") && (
          <Action
            label="New product"
            send="Create product"
            primary
            effect="Give it policies and features next; then licenses can be issued for it."
            fields={productFields}
            run={(payload: Creation) => change("createProduct", { payload })}
            then={({ id }) => void navigate({ to: "/products/$id", params: { id } })}
          />
        )}
      </Heading>
      <List
        caption="Products"
        noun="product"
        empty={
          <Empty
            icon="product"
            title="No products yet"
            hint="A product is what you sell. It gets policies and features; then licenses can be issued for it."
          />
        }
        columns={columns}
        page={page}
        search={search}
      />
    </>
  )
}
