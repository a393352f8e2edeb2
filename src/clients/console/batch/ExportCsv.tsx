/** All rows of a list as a CSV file that the browser saves. */
import { Exit } from "effect"
import { useEffect, useRef, useState } from "react"
import { countOf } from "../parts/Format.ts"
import { Fault } from "../parts/Show.tsx"
import { type Told, tell } from "../service/Failures.ts"
import { type ReadPage, readAll, save } from "./ReadAll.ts"

interface Props<A> {
  readonly label: string
  readonly file: string
  /** The first line. */
  readonly header: string
  readonly linesOf: (rows: ReadonlyArray<A>) => string
  readonly read: ReadPage<A>
}

export const ExportCsv = <A,>({ file, header, label, linesOf, read }: Props<A>) => {
  const [count, setCount] = useState<number>()
  const [told, setTold] = useState<Told>()
  const stop = useRef<AbortController>(null)
  useEffect(() => () => stop.current?.abort(), [])
  const start = () => {
    const controller = new AbortController()
    stop.current = controller
    setTold(undefined)
    setCount(0)
    // Text takes a tenth of the memory of the rows: a list may have a million.
    const parts = [header]
    let rows = 0
    const take = (page: ReadonlyArray<A>) => {
      parts.push(linesOf(page))
      rows += page.length
      setCount(rows)
    }
    void readAll({ read, signal: controller.signal, take }).then((exit) => {
      setCount(undefined)
      if (exit === undefined) return
      if (Exit.isFailure(exit)) setTold(tell(exit.cause))
      else save(file, parts)
    })
  }
  return (
    <>
      {told !== undefined && <Fault told={told} />}
      {count === undefined ? (
        <button type="button" onClick={start}>
          {label}
        </button>
      ) : (
        <button type="button" onClick={() => stop.current?.abort()}>
          Stop the export, {countOf(count)} read
        </button>
      )}
    </>
  )
}
