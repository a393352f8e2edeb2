/** The exports of reports: a new one of any kind, and the latest. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router"
import type { ReportExportFormat } from "../../../insight/reports/exports/Export.ts"
import type { ReportKind } from "../../../insight/reports/model/Filter.ts"
import type { ChangeFieldsOf } from "../parts/Fields.tsx"
import { Form } from "../parts/Form.tsx"
import { countOf, sentenceOf } from "../parts/Format.ts"
import { Pagination, usePages } from "../parts/Pagination.tsx"
import { Loaded, Section, Status, Table, Time } from "../parts/Show.tsx"
import { change, useAskPart, useMay } from "../service/Hooks.ts"
import { Filter, useNarrow } from "../tables/List.tsx"
import { encodeFilters, kinds, useExportFields } from "./ExportFields.ts"
import { formatField } from "./ExportThis.tsx"
import { ReportsHeading } from "./ReportsHeading.tsx"

const route = getRouteApi("/reports/exports")

export const Exports = () => {
  const { kind } = route.useSearch()
  const narrow = useNarrow()
  const may = useMay()
  return (
    <>
      <ReportsHeading title="Exports" />
      {may("report:export") && (
        <Section id="new" title="New export">
          <search className="row filters" aria-label="Kind of report">
            <Filter label="Report" value={kind} choices={kinds} none="Choose…" onChange={(kind) => narrow({ kind })} />
          </search>
          {kind !== undefined && <NewExport key={kind} kind={kind} />}
        </Section>
      )}
      <Latest />
    </>
  )
}

interface Given {
  readonly format: ReportExportFormat
}

const NewExport = ({ kind }: { readonly kind: ReportKind }) => {
  const navigate = useNavigate()
  const exportFields = useExportFields()
  return (
    <Form
      fields={{ format: formatField, ...exportFields[kind] } as ChangeFieldsOf<Given>}
      initial={{ format: "csv" }}
      name={`Export ${kind}`}
      send="Export"
      run={({ format, ...filters }: Given) =>
        change("createReportExport", { payload: { report_kind: kind, format, filters: encodeFilters(kind, filters) } })
      }
      done={({ id }) => void navigate({ to: "/reports/exports/$id", params: { id } })}
    />
  )
}

const Latest = () => {
  const { query, ...pages } = usePages()
  const exports = useAskPart("listReportExports", { query })
  return (
    <Section id="latest" title="Latest exports">
      <Loaded of={exports}>
        {(page) => (
          <>
            <Table
              caption="Latest exports"
              rows={page.items}
              keyOf={({ id }) => id}
              empty="No report has been exported yet."
              columns={[
                {
                  title: "Report",
                  show: ({ id, report_kind }) => (
                    <Link to="/reports/exports/$id" params={{ id }}>
                      {sentenceOf(report_kind.replaceAll("-", " "))}
                    </Link>
                  )
                },
                { title: "Status", show: ({ status }) => <Status of={status} /> },
                { title: "Format", goes: "next", show: ({ format }) => format.toUpperCase() },
                { title: "Rows", number: true, goes: "next", show: ({ rows }) => countOf(rows) },
                { title: "Created", goes: "last", show: ({ created_at }) => <Time at={created_at} /> }
              ]}
            />
            <Pagination page={page} {...pages} />
          </>
        )}
      </Loaded>
    </Section>
  )
}
