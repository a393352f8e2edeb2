/** The list of licenses. */
import { getRouteApi, Link } from "@tanstack/react-router"
import { LicenseStatus } from "../../../licensing/model/License.ts"
import { ExportLicenses } from "../batch/LicenseFile.tsx"
import { ChosenBar } from "../bulk/ChosenBar.tsx"
import { useChoice, useSelection } from "../bulk/Selection.tsx"
import { Icon } from "../look/Icon.tsx"
import { Empty } from "../parts/Empty.tsx"
import { choicesOf } from "../parts/Fields.tsx"
import { Heading } from "../parts/Show.tsx"
import { lastOf, useAsk, useMay } from "../service/Hooks.ts"
import { changed, Filter, focusFrom, isPart, List, pageOf, TextFilter, useNarrow } from "../tables/List.tsx"
import { ProductFilter } from "../tables/ListFields.tsx"
import { RecordChips } from "../tables/RecordChip.tsx"
import { Views } from "../tables/Views.tsx"
import { licenseColumns, maintainedColumns } from "./LicenseColumns.tsx"
import { filtersOf, type LicenseSearch } from "./LicenseSearch.ts"
import { Period } from "./Periods.ts"

const route = getRouteApi("/licenses")
const statuses = choicesOf(LicenseStatus.literals)
const periods = choicesOf(Period.literals)
const columns = licenseColumns()
const maintained = maintainedColumns()

export const Licenses = () => {
  const search: LicenseSearch = route.useSearch()
  const may = useMay()
  const filters = { ...filtersOf(search), expand: ["product", "policy", "customer"] as const }
  const page = useAsk("listLicenses", { query: { ...filters, ...pageOf({ cursor: search.cursor }) } })
  const shown = lastOf(page)
  const mayIssue = may("license:write") && may("product:read")
  const isNarrowed = isPart({ ...search, cursor: undefined })
  const [selection, set] = useSelection({ ...search, cursor: undefined, sort: undefined })
  const choice = useChoice({ rows: shown?.items ?? [], selection, set })
  return (
    <>
      <Heading
        title="Licenses"
        more={
          <>
            {mayIssue && <Link to="/licenses/batch">Issue a batch</Link>}
            <Link to="/bulk-jobs">Bulk jobs</Link>
            <ExportLicenses label="Export as CSV" chosen={{ filters }} />
          </>
        }
      >
        {mayIssue && <IssueLink />}
      </Heading>
      <Filters search={search} isNarrowed={isNarrowed} />
      {shown !== undefined && <ChosenBar selection={selection} set={set} page={shown} filters={filters} />}
      <List
        caption="Licenses"
        noun="license"
        icon="key"
        empty={isNarrowed ? <NoMatch /> : <First mayIssue={mayIssue} />}
        columns={search.maintenance === undefined ? columns : maintained}
        page={page}
        search={search}
        choice={choice}
      />
    </>
  )
}

const IssueLink = () => (
  <Link to="/licenses/new" className="button primary with-icon">
    <Icon name="plus" />
    Issue a license
  </Link>
)

const NoMatch = () => (
  <Empty icon="search" title="No license matches" hint="Remove a filter, or search by key, e-mail or device.">
    <ClearFilters />
  </Empty>
)

const First = ({ mayIssue }: { readonly mayIssue: boolean }) => (
  <Empty
    icon="key"
    title="No licenses yet"
    hint="A license says who may use a product, on how many devices and until when. First you need a product with a policy."
  >
    {mayIssue && <IssueLink />}
    <Link to="/products" className="button">
      Open the products
    </Link>
  </Empty>
)

const cleared = {
  q: undefined,
  product_id: undefined,
  policy_id: undefined,
  customer_id: undefined,
  order_id: undefined,
  subscription_id: undefined,
  feature_id: undefined,
  status: undefined,
  expires: undefined,
  maintenance: undefined,
  batch: undefined,
  cursor: undefined
}

const ClearFilters = () => (
  // It goes with what it clears.
  <Link
    to="."
    search={changed(cleared)}
    replace
    className="button quiet"
    onClick={() => focusFrom(document.querySelector(".filters"))}
  >
    Clear the filters
  </Link>
)

const Filters = (props: { readonly search: LicenseSearch; readonly isNarrowed: boolean }) => {
  const { isNarrowed, search } = props
  const narrow = useNarrow()
  const may = useMay()
  return (
    <search className="row filters" aria-label="Filters">
      <TextFilter label="Customer" value={search.q} onChange={(q) => narrow({ q })} />
      {may("product:read") && <ProductFilter value={search.product_id} cleared={{ policy_id: undefined }} />}
      <Filter label="Status" value={search.status} choices={statuses} onChange={(status) => narrow({ status })} />
      <Filter label="Expires" value={search.expires} choices={periods} onChange={(expires) => narrow({ expires })} />
      <Filter
        label="Updates end"
        value={search.maintenance}
        choices={periods}
        onChange={(maintenance) => narrow({ maintenance })}
      />
      <TextFilter label="Batch" value={search.batch} onChange={(batch) => narrow({ batch })} />
      <RecordChips search={search} />
      {isNarrowed && <ClearFilters />}
      <Views list="Licenses" search={search} />
    </search>
  )
}
