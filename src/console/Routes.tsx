/** Every screen with its address. All but the first are loaded when they are opened. */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router"
import { Schema } from "effect"
import { CustomerSearch } from "./customers/CustomerSearch.ts"
import { FeedSearch } from "./feeds/FeedSearch.ts"
import { LicenseSearch } from "./licenses/LicenseSearch.ts"
import { CodeSearch, CreatedSearch } from "./parts/CodeSearch.ts"
import { OverviewSearch } from "./reports/OverviewSearch.ts"
import { ExportsSearch, LedgerSearch, SummarySearch } from "./reports/UsageSearch.ts"
import { Frame } from "./shell/Frame.tsx"
import { Overview } from "./shell/Overview.tsx"

const root = createRootRoute({
  component: Frame,
  notFoundComponent: () => <p className="empty">There is nothing at this address.</p>
})

const at = { getParentRoute: () => root }
const SearchSearch = Schema.Struct({ q: Schema.optionalKey(Schema.String) })
const searchOf = Schema.toStandardSchemaV1

const overview = createRoute({ ...at, path: "/", component: Overview, validateSearch: searchOf(OverviewSearch) })
const search = createRoute({
  ...at,
  path: "/search",
  component: lazyRouteComponent(() => import("./shell/SearchPage.tsx"), "SearchPage"),
  validateSearch: searchOf(SearchSearch)
})
const licenses = createRoute({
  ...at,
  path: "/licenses",
  component: lazyRouteComponent(() => import("./licenses/Licenses.tsx"), "Licenses"),
  validateSearch: searchOf(LicenseSearch)
})
const issue = createRoute({
  ...at,
  path: "/licenses/new",
  component: lazyRouteComponent(() => import("./licenses/IssueLicense.tsx"), "IssueLicense")
})
const license = createRoute({
  ...at,
  path: "/licenses/$id",
  component: lazyRouteComponent(() => import("./licenses/LicensePage.tsx"), "LicensePage")
})
const customers = createRoute({
  ...at,
  path: "/customers",
  component: lazyRouteComponent(() => import("./customers/Customers.tsx"), "Customers"),
  validateSearch: searchOf(CustomerSearch)
})
const customer = createRoute({
  ...at,
  path: "/customers/$id",
  component: lazyRouteComponent(() => import("./customers/CustomerPage.tsx"), "CustomerPage")
})
const products = createRoute({
  ...at,
  path: "/products",
  component: lazyRouteComponent(() => import("./catalog/Products.tsx"), "Products"),
  validateSearch: searchOf(CodeSearch)
})
const product = createRoute({
  ...at,
  path: "/products/$id",
  component: lazyRouteComponent(() => import("./catalog/ProductPage.tsx"), "ProductPage")
})
const policy = createRoute({
  ...at,
  path: "/policies/$id",
  component: lazyRouteComponent(() => import("./catalog/PolicyPage.tsx"), "PolicyPage")
})
const apiKeys = createRoute({
  ...at,
  path: "/api-keys",
  component: lazyRouteComponent(() => import("./access/ApiKeys.tsx"), "ApiKeys"),
  validateSearch: searchOf(CreatedSearch)
})
const webhooks = createRoute({
  ...at,
  path: "/webhooks",
  component: lazyRouteComponent(() => import("./webhooks/Webhooks.tsx"), "Webhooks"),
  validateSearch: searchOf(CreatedSearch)
})
const usage = createRoute({
  ...at,
  path: "/reports",
  component: lazyRouteComponent(() => import("./reports/Usage.tsx"), "Usage"),
  validateSearch: searchOf(SummarySearch)
})
const ledger = createRoute({
  ...at,
  path: "/reports/ledger",
  component: lazyRouteComponent(() => import("./reports/Ledger.tsx"), "Ledger"),
  validateSearch: searchOf(LedgerSearch)
})
const exports = createRoute({
  ...at,
  path: "/reports/exports",
  component: lazyRouteComponent(() => import("./reports/Exports.tsx"), "Exports"),
  validateSearch: searchOf(ExportsSearch)
})
const reportExport = createRoute({
  ...at,
  path: "/reports/exports/$id",
  component: lazyRouteComponent(() => import("./reports/ExportPage.tsx"), "ExportPage")
})
const activity = createRoute({
  ...at,
  path: "/activity",
  component: lazyRouteComponent(() => import("./feeds/ActivityPage.tsx"), "ActivityPage"),
  validateSearch: searchOf(FeedSearch)
})
const operations = createRoute({
  ...at,
  path: "/operations",
  component: lazyRouteComponent(() => import("./operations/OperationsPage.tsx"), "OperationsPage")
})

export const router = createRouter({
  routeTree: root.addChildren([
    overview,
    search,
    licenses,
    issue,
    license,
    customers,
    customer,
    products,
    product,
    policy,
    apiKeys,
    webhooks,
    usage,
    ledger,
    exports,
    reportExport,
    activity,
    operations
  ]),
  basepath: "/console",
  scrollRestoration: true
})

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router
  }
}
