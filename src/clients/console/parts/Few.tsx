/** Shows the first rows of a long part until the reader asks for all or a link leads to it. A print has all rows. */
import { useRouterState } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { countOf } from "./Format.ts"

interface Few {
  readonly isFew: boolean
  /** The button that shows all rows, or fewer again; nothing if all are shown anyway. */
  readonly toggle: ReactNode
}

/** `hasNext`: there are more than the `count` that were read. */
export const useFew = (part: string, count: number, fewMax: number, hasNext = false): Few => {
  const isLinked = useRouterState({ select: ({ location }) => location.hash === part })
  const [chosen, setChosen] = useState<boolean>()
  const isMany = count > fewMax
  const isFew = isMany && !(chosen ?? isLinked)
  const toggle = isMany && (
    <button type="button" className="quiet" onClick={() => setChosen(isFew)}>
      {!isFew ? "Show fewer" : hasNext ? "Show all" : `Show all ${countOf(count)}`}
    </button>
  )
  return { isFew, toggle }
}
