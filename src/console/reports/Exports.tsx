/** The exports of reports: a new one of any kind, and the latest, which the events name. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import type { Event } from "../../events/Event.ts"
import type { ReportExportFormat } from "../../reports/exports/Export.ts"
import type { ReportKind } from "../../reports/model/Filter.ts"
import type { ChangeFieldsOf } from "../parts/Fields.tsx"
import { Form } from "../parts/Form.tsx"
import { Filter, useNarrow } from "../parts/List.tsx"
import { RecordLink } from "../parts/RecordLink.tsx"
import { Loaded, Section, Table, Time } from "../parts/Show.tsx"
import { change, useAsk, useMay } from "../service/Hooks.ts"
import { encodeFilters, exportFields, kinds } from "./ExportFields.ts"
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
      <Section id="new" title="New export">
        <search className="row filters" aria-label="Kind of report">
          <Filter label="Report" value={kind} choices={kinds} none="Choose…" onChange={(kind) => narrow({ kind })} />
        </search>
        {kind !== undefined && <NewExport key={kind} kind={kind} />}
      </Section>
      {may("event:read") && <Latest />}
    </>
  )
}

interface Given {
  readonly format: ReportExportFormat
}

const NewExport = ({ kind }: { readonly kind: ReportKind }) => {
  const navigate = useNavigate()
  return (
    <Form
      fields={{ format: formatField, ...exportFields[kind] } as ChangeFieldsOf<Given>}
      initial={{ format: "csv" }}
      send="Export"
      run={({ format, ...filters }: Given) =>
        change("createReportExport", { payload: { report_kind: kind, format, filters: encodeFilters(kind, filters) } })
      }
      done={({ id }) => void navigate({ to: "/reports/exports/$id", params: { id } })}
    />
  )
}

const wordOf = ({ metadata }: Event, name: string): string => {
  const value = metadata[name]
  return typeof value === "string" ? value.replaceAll("-", " ") : "–"
}

const Latest = () => {
  const events = useAsk("listEvents", { query: { event_type: "report_export.created", limit: 50 } })
  return (
    <Section id="latest" title="Latest exports">
      <Loaded of={events}>
        {({ items }) => (
          <Table
            caption="Latest exports"
            rows={items}
            keyOf={({ sequence }) => String(sequence)}
            empty="No report has been exported yet."
            columns={[
              {
                title: "Report",
                show: (event) => (
                  <RecordLink
                    field="report_export_id"
                    id={event.resource_id ?? ""}
                    name={wordOf(event, "report_kind")}
                  />
                )
              },
              { title: "Format", show: (event) => wordOf(event, "format") },
              { title: "Created", show: ({ created_at }) => <Time at={created_at} /> }
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}
