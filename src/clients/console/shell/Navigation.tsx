/** The main navigation, in groups: beside the screen, or where that has no room, behind a button. */
import { Link, useRouterState } from "@tanstack/react-router"
import { type ReactNode, type RefObject, useId } from "react"
import { Icon } from "../look/Icon.tsx"
import { type Group, groups, type Item } from "../search/Places.ts"
import { useMay } from "../service/Hooks.ts"

export const navigationId = "navigation"

interface Props {
  readonly menu: RefObject<HTMLElement | null>
  /** Stands at the foot. */
  readonly children: ReactNode
}

export const Navigation = ({ children, menu }: Props) => {
  const may = useMay()
  const isOffered = ({ scopes }: Item) => scopes.some(may)
  return (
    <nav ref={menu} id={navigationId} className="navigation" popover="auto" aria-label="Main">
      <ul className="home">
        <li>
          <Link
            to="/"
            activeOptions={{ exact: true, includeSearch: false }}
            onClick={() => menu.current?.hidePopover()}
          >
            <Icon name="overview" />
            Overview
          </Link>
        </li>
      </ul>
      {groups
        .map(({ name, items }) => ({ name, items: items.filter(isOffered) }))
        .filter(({ items }) => items.length > 0)
        .map((group) => (
          <GroupView key={group.name} group={group} onChosen={() => menu.current?.hidePopover()} />
        ))}
      {children}
    </nav>
  )
}

const GroupView = ({ group, onChosen }: { readonly group: Group; readonly onChosen: () => void }) => {
  const id = useId()
  const path = useRouterState({ select: ({ location }) => location.pathname })
  return (
    <>
      <p id={id} className="quiet">
        {group.name}
      </p>
      <ul aria-labelledby={id}>
        {group.items.map(({ also, icon, name, to }) => (
          <li key={to}>
            {/* Only addresses of screens get here. */}
            <Link
              to={to as "/"}
              activeOptions={{ exact: false, includeSearch: false }}
              aria-current={also !== undefined && path.startsWith(also) ? "true" : undefined}
              onClick={onChosen}
            >
              <Icon name={icon} />
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </>
  )
}
