/** The pages of the licenses that belong to a record. */
import type { License } from "../../../licensing/model/License.ts"
import { Pagination, type usePages } from "../parts/Pagination.tsx"
import { type Column, Loaded, Table } from "../parts/Show.tsx"
import type { Asked } from "../service/Hooks.ts"
import { licenseColumns } from "./LicenseColumns.tsx"

export const LicensePages = (props: {
  readonly of: Asked<"listLicenses">
  readonly pages: Omit<ReturnType<typeof usePages>, "query">
  readonly empty: string
  readonly columns?: ReadonlyArray<Column<License>>
}) => (
  <Loaded of={props.of}>
    {(page) => (
      <>
        <Table
          caption="Licenses"
          columns={props.columns ?? licenseColumns()}
          rows={page.items}
          keyOf={({ id }) => id}
          empty={props.empty}
        />
        <Pagination page={page} {...props.pages} />
      </>
    )}
  </Loaded>
)
