/** The list of licenses. */
import { getRouteApi, Link } from "@tanstack/react-router"
import { LicenseStatus } from "../../licenses/model/License.ts"
import { BulkBar } from "../bulk/BulkBar.tsx"
import { ExportCsv } from "../bulk/ExportCsv.tsx"
import { choiceOf, useSelection } from "../bulk/Selection.tsx"
import { choicesOf } from "../parts/Fields.tsx"
import { Filter, List, pageOf, TextFilter, useNarrow } from "../parts/List.tsx"
import { ProductFilter } from "../parts/Listed.tsx"
import { Heading } from "../parts/Show.tsx"
import { lastOf, useAsk, useMay } from "../service/Hooks.ts"
import { licenseColumns } from "./LicenseColumns.tsx"
import { filtersOf, type LicenseSearch } from "./LicenseSearch.ts"
import { Period } from "./Periods.ts"

const route = getRouteApi("/licenses")
const statuses = choicesOf(LicenseStatus.literals)
const periods = choicesOf(Period.literals)

export const Licenses = () => {
  const search: LicenseSearch = route.useSearch()
  const may = useMay()
  const filters = { ...filtersOf(search), expand: ["product", "policy", "customer"] as const }
  const page = useAsk("listLicenses", { query: { ...filters, ...pageOf(search) } })
  const shown = lastOf(page)
  const [selection, set] = useSelection({ ...search, cursor: undefined, sort: undefined })
  return (
    <>
      <Heading title="Licenses">
        <ExportCsv label="Export as CSV" chosen={{ filters }} />
        {may("license:write") && may("product:read") && (
          <>
            <Link to="/licenses/batch" className="button">
              Issue a batch
            </Link>
            <Link to="/licenses/new" className="button primary">
              Issue a license
            </Link>
          </>
        )}
      </Heading>
      <Filters search={search} />
      {shown !== undefined && (
        <BulkBar selection={selection} set={set} page={shown} filters={filters} mayChange={may("license:write")} />
      )}
      <List
        caption="Licenses"
        noun="license"
        empty="No license matches. Widen the filters, or issue a license."
        columns={licenseColumns()}
        page={page}
        search={search}
        choice={choiceOf({ rows: shown?.items ?? [], selection, set })}
      />
    </>
  )
}

const Filters = ({ search }: { readonly search: LicenseSearch }) => {
  const narrow = useNarrow()
  const may = useMay()
  return (
    <search className="row filters" aria-label="Filters">
      <TextFilter label="Customer" value={search.q} onChange={(q) => narrow({ q })} />
      {may("product:read") && <ProductFilter value={search.product_id} cleared={{ policy_id: undefined }} />}
      <Filter label="Status" value={search.status} choices={statuses} onChange={(status) => narrow({ status })} />
      <Filter label="Expires" value={search.expires} choices={periods} onChange={(expires) => narrow({ expires })} />
    </search>
  )
}
