/** The places of the console, in groups, with the scopes that they need. */
import type { ManagementScope } from "../../../access/Scope.ts"
import type { IconName } from "../look/Icon.tsx"

export interface Item {
  readonly to: string
  readonly icon: IconName
  readonly name: string
  /** One of these is enough. */
  readonly scopes: ReadonlyArray<ManagementScope>
  /** The beginning of further addresses whose screens belong to this place. */
  readonly also?: string
}

export interface Group {
  readonly name: string
  readonly items: ReadonlyArray<Item>
}

export const groups: ReadonlyArray<Group> = [
  {
    name: "Manage",
    items: [
      { to: "/licenses", icon: "key", name: "Licenses", scopes: ["license:read"], also: "/bulk-jobs" },
      { to: "/devices", icon: "device", name: "Devices", scopes: ["license:read"] },
      { to: "/products", icon: "product", name: "Products", scopes: ["product:read"], also: "/policies" }
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
