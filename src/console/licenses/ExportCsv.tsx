/** The licenses that the filters choose, as a CSV file that the browser saves. */

import { Exit } from "effect"
import { useState } from "react"
import type { Keyset } from "../../api/Paging.ts"
import type { License } from "../../licenses/model/License.ts"
import { countOf } from "../parts/Format.ts"
import { Fault } from "../parts/Show.tsx"
import { type Told, tell } from "../service/Failures.ts"
import { run } from "../service/Hooks.ts"
import { csvOf } from "./Csv.ts"
import { filtersOf, type LicenseSearch } from "./LicenseSearch.ts"

export const ExportCsv = ({ search }: { readonly search: LicenseSearch }) => {
  const [count, setCount] = useState<number>()
  const [told, setTold] = useState<Told>()
  const read = (rows: ReadonlyArray<License>, cursor?: Keyset): Promise<void> =>
    run("listLicenses", {
      query: { ...filtersOf(search), limit: 200, ...(cursor === undefined ? {} : { cursor }) }
    }).then((exit) => {
      if (Exit.isFailure(exit)) return setTold(tell(exit.cause))
      const all = [...rows, ...exit.value.items]
      setCount(all.length)
      return exit.value.next === undefined ? save(csvOf(all)) : read(all, exit.value.next)
    })
  const start = () => {
    if (count !== undefined) return
    setTold(undefined)
    setCount(0)
    void read([]).finally(() => setCount(undefined))
  }
  return (
    <>
      {told !== undefined && <Fault told={told} />}
      <button type="button" aria-disabled={count !== undefined} onClick={start}>
        {count === undefined ? "Export as CSV" : `Exporting, ${countOf(count)} read…`}
      </button>
    </>
  )
}

const save = (text: string): void => {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }))
  const link = document.createElement("a")
  link.href = address
  link.download = "licenses.csv"
  link.click()
  URL.revokeObjectURL(address)
}
