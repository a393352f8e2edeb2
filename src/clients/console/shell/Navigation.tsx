/** The main navigation, in groups: beside the screen, or where that has no room, behind a button. */
import { Link } from "@tanstack/react-router"
import { type ReactNode, type RefObject, useId } from "react"
import type { ManagementScope } from "../../../access/Scope.ts"
import { Icon, type IconName } from "../look/Icon.tsx"
import { useMay } from "../service/Hooks.ts"

interface Item {
  readonly to: string
  readonly icon: IconName
  readonly name: string
  /** One of these is enough. */
  readonly scopes: ReadonlyArray<ManagementScope>
}

interface Group {
  readonly name: string
  readonly items: ReadonlyArray<Item>
}

const groups: ReadonlyArray<Group> = [
  {
    name: "Manage",
    items: [
      { to: "/licenses", icon: "key", name: "Licenses", scopes: ["license:read"] },
      { to: "/devices", icon: "device", name: "Devices", scopes: ["license:read"] },
      { to: "/products", icon: "product", name: "Products", scopes: ["product:read"] }
    ]
  },
  {
    name: "Buyers",
    items: [
      { to: "/customers", icon: "people", name: "Customers", scopes: ["license:read"] },
      { to: "/subscriptions", icon: "repeat", name: "Subscriptions", scopes: ["product:read"] },
      { to: "/orders", icon: "receipt", name: "Orders", scopes: ["product:read"] }
    ]
  },
  {
    name: "Analysis",
    items: [
      { to: "/reports", icon: "chart", name: "Reports", scopes: ["report:read", "report:export"] },
      { to: "/activity", icon: "activity", name: "Activity", scopes: ["report:read", "event:read"] }
    ]
  },
  {
    name: "Service",
    items: [
      { to: "/webhooks", icon: "webhook", name: "Webhooks", scopes: ["webhook:write"] },
      { to: "/api-keys", icon: "lock", name: "API keys", scopes: ["admin"] },
      { to: "/operations", icon: "gauge", name: "Operations", scopes: ["ops:read"] }
    ]
  }
]

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
  return (
    <>
      <p id={id} className="quiet">
        {group.name}
      </p>
      <ul aria-labelledby={id}>
        {group.items.map(({ icon, name, to }) => (
          <li key={to}>
            {/* Only addresses of screens get here. */}
            <Link to={to as "/"} activeOptions={{ exact: false, includeSearch: false }} onClick={onChosen}>
              <Icon name={icon} />
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </>
  )
}
