/** One export: how far it is, and its file. */
import { getRouteApi } from "@tanstack/react-router"
import { Exit, type Schema } from "effect"
import { useState } from "react"
import type { ReportExport } from "../../../insight/reports/exports/Export.ts"
import { countOf, wordsOf } from "../parts/Format.ts"
import { Actor, isNamed, RecordName } from "../parts/Names.tsx"
import { OneRecord } from "../parts/OneRecord.tsx"
import { Facts, Fault, Status, Time } from "../parts/Show.tsx"
import { type Told, tell } from "../service/Failures.ts"
import { useFollowing } from "../service/Following.ts"
import { run, useAsk, useBusy } from "../service/Hooks.ts"
import { later } from "../service/Service.ts"
import { fileOf } from "./ExportFile.ts"
import { ReportsHeading } from "./ReportsHeading.tsx"

const route = getRouteApi("/reports/exports/$id")

export const ExportPage = () => {
  const { id } = route.useParams()
  const asked = useAsk("getReportExport", { params: { id } })
  return (
    <OneRecord of={asked} noun="export">
      {(first) => <Screen key={first.id} first={first} />}
    </OneRecord>
  )
}

const isOpen = ({ status }: ReportExport) => status === "pending" || status === "processing"

const Screen = ({ first }: { readonly first: ReportExport }) => {
  const reread = () => run("getReportExport", { params: { id: first.id } })
  const { failed, isRefused, latest } = useFollowing({ first, isOpen, reread })
  return (
    <>
      <ReportsHeading title={`Export: ${latest.report_kind.replaceAll("-", " ")}`}>
        {latest.status === "completed" && <Download of={latest} />}
      </ReportsHeading>
      {failed !== undefined && <Fault told={tell(failed)} />}
      {!isRefused && <p role="status">{progressOf(latest)}</p>}
      {latest.failure !== undefined && <p className="failed">{latest.failure}</p>}
      <Facts
        of={[
          ["Status", <Status key="status" of={latest.status} />],
          ["Format", latest.format.toUpperCase()],
          ["Rows", countOf(latest.rows)],
          ["Size", latest.size_bytes === undefined ? "–" : sizeOf(latest.size_bytes)],
          ["Created", <Time key="created" at={latest.created_at} />],
          ["Created by", <Creator key="by" of={latest} />],
          ...Object.entries(latest.filters).map(
            ([name, value]) => [filterName(name), <FilterValue key={name} name={name} of={value} />] as const
          ),
          [
            "SHA-256 of the file",
            latest.artifact_digest === "" ? "–" : <code key="digest">{latest.artifact_digest}</code>
          ],
          ...(latest.erased_at === undefined ? [] : [["Erased", <Time key="erased" at={latest.erased_at} />] as const])
        ]}
      />
    </>
  )
}

/** Exports of earlier versions have no name of who created them. */
const Creator = ({ of: { created_by, created_by_name } }: { readonly of: ReportExport }) =>
  created_by_name === undefined ? (
    <RecordName field="api_key_id" id={created_by} />
  ) : (
    <Actor id={created_by} name={created_by_name} />
  )

const nounOf = (name: string) => wordsOf(name.replace(/_(?:id|code)$/, ""))

const filterName = (name: string) =>
  name === "group_by" ? "Summed up by" : name === "tz" ? "Time zone of days" : `Only ${nounOf(name)}`

const FilterValue = ({ name, of }: { readonly name: string; readonly of: Schema.Json }) => {
  const text = String(of)
  if (isNamed(name)) return <RecordName field={name} id={text} />
  if (name === "group_by") return text.split(",").map(nounOf).join(", ")
  return name === "from" || name === "to" ? <Time at={Date.parse(text)} /> : text
}

const progressOf = (latest: ReportExport): string => {
  switch (latest.status) {
    case "pending":
      return "The export waits for its turn."
    case "processing":
      return `The export is being written: ${countOf(latest.rows)} rows so far.`
    case "completed":
      return "The file is ready, and stays as it is."
    case "failed":
      return "The export failed. Narrow the report, and export it again."
  }
}

const units = ["byte", "kilobyte", "megabyte", "gigabyte"] as const

const sizeOf = (bytes: number): string => {
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  return new Intl.NumberFormat(undefined, {
    style: "unit",
    unit: units[power]!,
    unitDisplay: "long",
    maximumFractionDigits: 1
  }).format(bytes / 1_000 ** power)
}

const Download = ({ of: { format, id, report_kind } }: { readonly of: ReportExport }) => {
  const [told, setTold] = useState<Told>()
  const [busy, track] = useBusy()
  const start = () => {
    if (busy) return
    setTold(undefined)
    void track(fileOf(id)).then((exit) => {
      if (Exit.isSuccess(exit)) save(exit.value, `${report_kind}-${id}.${format}`)
      else setTold(tell(exit.cause))
    })
  }
  return (
    <>
      {told !== undefined && <Fault told={told} />}
      <button type="button" className="primary" aria-disabled={busy} onClick={start}>
        {busy ? "Downloading…" : "Download"}
      </button>
    </>
  )
}

const save = (bytes: ArrayBuffer, name: string): void => {
  const address = URL.createObjectURL(new Blob([bytes]))
  const link = document.createElement("a")
  link.href = address
  link.download = name
  link.click()
  // Some browsers fetch it only after this.
  later("1 minute", () => URL.revokeObjectURL(address))
}
