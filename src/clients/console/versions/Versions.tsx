/** The versions of a product. */
import { getRouteApi, Link } from "@tanstack/react-router"
import type { ProductVersion } from "../../../vendor/versions/ProductVersion.ts"
import { Action } from "../parts/Dialog.tsx"
import { type FieldsOf, instant, text } from "../parts/Fields.tsx"
import { Menu } from "../parts/Menu.tsx"
import { metadata } from "../parts/Metadata.tsx"
import { RecordName } from "../parts/Names.tsx"
import { type Column, Heading, Time } from "../parts/Show.tsx"
import { change, useAsk, useMay } from "../service/Hooks.ts"
import type { Payload } from "../service/Service.ts"
import { List, pageOf, TextFilter, useNarrow } from "../tables/List.tsx"
import { DeleteVersion } from "./DeleteVersion.tsx"
import type { VersionSearch } from "./VersionSearch.ts"

const route = getRouteApi("/products/$id/versions")

type Creation = Payload<"createProductVersion">

const fields: FieldsOf<Creation> = {
  version: text("Version", { required: true, hint: "Exactly as the application tells it, for example 2.4.1." }),
  released_at: instant("Released at", {
    hint: "Leave empty for now. Licenses whose updates ended before do not get it."
  }),
  metadata: metadata()
}

const columns = (mayChange: boolean): ReadonlyArray<Column<ProductVersion>> => [
  {
    title: "Version",
    show: ({ id, product_id, version }) => (
      <Link to="/products/$id/versions/$version" params={{ id: product_id, version: id }}>
        {version}
      </Link>
    )
  },
  { title: "Released", sort: "released_at", goes: "last", show: ({ released_at }) => <Time at={released_at} /> },
  {
    title: "Recorded",
    sort: "created_at",
    goes: "next",
    show: ({ created_at }) => <Time at={created_at} only="day" />
  },
  {
    title: "Actions",
    quiet: true,
    number: true,
    show: (version) =>
      mayChange && (
        <Menu quiet label={`Actions for ${version.version}`}>
          <DeleteVersion version={version} />
        </Menu>
      )
  }
]

export const Versions = () => {
  const { id } = route.useParams()
  const search: VersionSearch = route.useSearch()
  const may = useMay()
  const narrow = useNarrow()
  const page = useAsk("listProductVersions", { params: { id }, query: pageOf(search) })
  return (
    <>
      <Heading title="Versions">
        {may("product:write") && (
          <Action
            label="New version"
            send="Create version"
            primary
            effect="Licenses whose updates last until its release may use it. With the first version, all versions that are not in the list are refused."
            fields={fields}
            run={(payload: Creation) => change("createProductVersion", { params: { id }, payload })}
          />
        )}
      </Heading>
      <p>
        Product: <RecordName field="product_id" id={id} />
      </p>
      <search className="row filters" aria-label="Filters">
        <TextFilter label="Version" value={search.version} onChange={(version) => narrow({ version })} />
      </search>
      <List
        caption="Versions"
        noun="version"
        empty="No version matches. Without any version, licenses allow every version."
        columns={columns(may("product:write"))}
        page={page}
        search={search}
      />
    </>
  )
}
