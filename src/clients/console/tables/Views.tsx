/** Views of a list: filters and sort under a name, which the browser keeps. */
import { Link, useNavigate } from "@tanstack/react-router"
import { Exit } from "effect"
import { Action } from "../parts/Dialog.tsx"
import { type FieldsOf, text } from "../parts/Fields.tsx"
import { Menu } from "../parts/Menu.tsx"
import { useKept } from "./Kept.ts"

type Search = Readonly<Record<string, string>>

interface View {
  readonly name: string
  readonly search: Search
}

const viewsMax = 20

const isView = (value: unknown): value is View =>
  typeof value === "object" && value !== null && "name" in value && typeof value.name === "string" && "search" in value

/** What a view keeps of an address: not its page. */
const searchOf = (search: object): Search =>
  Object.fromEntries(Object.entries(search).filter(([name, value]) => name !== "cursor" && typeof value === "string"))

const isSame = (one: Search, other: Search) =>
  JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort())

interface Named {
  readonly name: string
}

const nameField: FieldsOf<Named> = { name: text("Name", { required: true }) }

/** Once it is kept, another action stands in the menu: the dialog closes first. */
const given = (named: Named) => Promise.resolve(Exit.succeed(named))

export const Views = ({ list, search }: { readonly list: string; readonly search: object }) => {
  const [views, set] = useKept(`views.${list}`, isView)
  const navigate = useNavigate()
  const now = searchOf(search)
  const open = (next: Search) => void navigate({ to: ".", search: next as never, replace: true })
  const active = views.find((view) => isSame(view.search, now))
  const put = ({ name }: Named, replaced?: View) => {
    const kept = views.filter((view) => view !== replaced && view.name !== name)
    set([...kept, { name, search: replaced?.search ?? now }].slice(-viewsMax))
  }
  if (views.length === 0 && Object.keys(now).length === 0) return null
  return (
    <>
      {views.map((view) => (
        <Link
          key={view.name}
          to="."
          search={view.search as never}
          replace
          className={view === active ? "chip view set" : "chip view"}
          aria-current={view === active ? "true" : undefined}
          activeProps={{}}
        >
          {view.name}
        </Link>
      ))}
      <Menu label="Views" quiet icon="bookmark">
        {active === undefined && Object.keys(now).length > 0 && (
          <Action
            label="Save this view"
            effect="The filters and the sort are kept under this name, in this browser only."
            fields={nameField}
            run={given}
            then={(named) => put(named)}
          />
        )}
        {active !== undefined && (
          <>
            <Action
              label="Rename this view"
              effect="The view keeps its filters and its sort."
              fields={nameField}
              initial={{ name: active.name }}
              run={given}
              then={(named) => put(named, active)}
            />
            <button
              type="button"
              className="risky"
              onClick={() => {
                set(views.filter((view) => view !== active))
                open({})
              }}
            >
              Delete this view
            </button>
          </>
        )}
        {active === undefined && Object.keys(now).length === 0 && <p className="quiet">Set filters to save a view.</p>}
      </Menu>
    </>
  )
}
