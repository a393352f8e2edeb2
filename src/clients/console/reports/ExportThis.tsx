/** Exports the report that is shown, with its filters. */
import { useNavigate } from "@tanstack/react-router"
import type { Schema } from "effect"
import { ReportExportFormat } from "../../../insight/reports/exports/Export.ts"
import type { ReportKind } from "../../../insight/reports/model/Filter.ts"
import { Action } from "../parts/Dialog.tsx"
import { type Choice, choice } from "../parts/Fields.tsx"
import { change } from "../service/Hooks.ts"

const names = { csv: "CSV, for spreadsheets", json: "JSON, for programs", pdf: "PDF, for people" } as const
const formats: ReadonlyArray<Choice<ReportExportFormat>> = ReportExportFormat.literals.map((id) => ({
  id,
  name: names[id]
}))
export const formatField = choice("Format", formats, { required: true })

interface Props {
  readonly kind: ReportKind
  readonly filters: { readonly [name: string]: Schema.Json }
}

export const ExportThis = ({ filters, kind }: Props) => {
  const navigate = useNavigate()
  return (
    <Action
      label="Export"
      effect="All rows that the filters choose, as they are now, become a file that stays the same."
      fields={{ format: formatField }}
      initial={{ format: "csv" }}
      run={({ format }: { readonly format: ReportExportFormat }) =>
        change("createReportExport", { payload: { report_kind: kind, format, filters } })
      }
      then={({ id }) => void navigate({ to: "/reports/exports/$id", params: { id } })}
    />
  )
}
