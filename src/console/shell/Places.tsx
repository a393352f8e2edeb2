/** The main navigation, in groups: beside the screen, or where that has no room, behind a button. */
import { Link } from "@tanstack/react-router"
import { type RefObject, useId } from "react"
import type { ManagementScope } from "../../auth/Scope.ts"
import { useMay } from "../service/Hooks.ts"

interface Place {
  readonly to: string
  readonly name: string
  /** One of these is enough. */
  readonly scopes: ReadonlyArray<ManagementScope>
}

interface Group {
  readonly name: string
  readonly places: ReadonlyArray<Place>
}

const groups: ReadonlyArray<Group> = [
  {
    name: "Licensing",
    places: [
      { to: "/licenses", name: "Licenses", scopes: ["license:read"] },
      { to: "/devices", name: "Devices", scopes: ["license:read"] },
      { to: "/products", name: "Products", scopes: ["product:read"] }
    ]
  },
  {
    name: "Buyers",
    places: [
      { to: "/customers", name: "Customers", scopes: ["license:read"] },
      { to: "/subscriptions", name: "Subscriptions", scopes: ["product:read"] },
      { to: "/orders", name: "Orders", scopes: ["product:read"] }
    ]
  },
  {
    name: "Analysis",
    places: [
      { to: "/reports", name: "Reports", scopes: ["report:read", "report:export"] },
      { to: "/activity", name: "Activity", scopes: ["report:read", "event:read"] }
    ]
  },
  {
    name: "Service",
    places: [
      { to: "/webhooks", name: "Webhooks", scopes: ["webhook:write"] },
      { to: "/api-keys", name: "API keys", scopes: ["admin"] },
      { to: "/operations", name: "Operations", scopes: ["ops:read"] }
    ]
  }
]

export const placesId = "places"

export const Places = ({ menu }: { readonly menu: RefObject<HTMLElement | null> }) => {
  const may = useMay()
  const isOffered = ({ scopes }: Place) => scopes.some(may)
  return (
    <nav ref={menu} id={placesId} className="places" popover="auto" aria-label="Main">
      {groups
        .map(({ name, places }) => ({ name, places: places.filter(isOffered) }))
        .filter(({ places }) => places.length > 0)
        .map((group) => (
          <GroupView key={group.name} group={group} onChosen={() => menu.current?.hidePopover()} />
        ))}
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
        {group.places.map(({ name, to }) => (
          <li key={to}>
            {/* Only addresses of screens get here. */}
            <Link to={to as "/"} activeOptions={{ exact: false, includeSearch: false }} onClick={onChosen}>
              {name}
            </Link>
          </li>
        ))}
      </ul>
    </>
  )
}
