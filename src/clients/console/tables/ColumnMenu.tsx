/** Which columns a list shows: the reader's choice, which the browser keeps for each list. */
import { useMemo } from "react"
import { Icon } from "../look/Icon.tsx"
import { Menu } from "../parts/Menu.tsx"
import { useKept } from "./Kept.ts"

interface Titled {
  readonly title: string
  readonly quiet?: true
}

const isText = (value: unknown): value is string => typeof value === "string"

/** The columns that are shown, and the menu in which they are chosen. The first, which names the row, is always shown. */
export const useColumns = <C extends Titled>(list: string, columns: ReadonlyArray<C>) => {
  const [left, setLeft] = useKept(`columns.${list}`, isText)
  const shown = useMemo(
    () => columns.filter(({ title }, place) => place === 0 || !left.includes(title)),
    [columns, left]
  )
  const offered = columns.slice(1).filter(({ quiet }) => !quiet)
  const toggle = (title: string) =>
    setLeft(left.includes(title) ? left.filter((other) => other !== title) : [...left, title])
  const menu = offered.length > 1 && (
    <Menu label="Columns" quiet icon="columns">
      {offered.map(({ title }) => (
        <button key={title} type="button" aria-pressed={!left.includes(title)} onClick={() => toggle(title)}>
          <Icon name="check" />
          {title}
        </button>
      ))}
    </Menu>
  )
  return { shown, menu }
}
