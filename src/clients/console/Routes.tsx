/** Every screen with its address. All but the first are loaded when they are opened. */
import { createRootRoute, createRoute, createRouter, Link } from "@tanstack/react-router"
import { Schema } from "effect"
import { AuditSearch } from "./audit/AuditSearch.ts"
import { IssueSearch } from "./batch/IssueSearch.ts"
import { BulkSearch } from "./bulk/BulkSearch.ts"
import { OrderSearch, PeriodSearch, SubscriptionSearch } from "./commerce/PurchaseSearch.ts"
import { CustomerPageSearch, CustomerSearch } from "./customers/CustomerSearch.ts"
import { DeviceSearch } from "./devices/DeviceSearch.ts"
import { FeedSearch } from "./feeds/FeedSearch.ts"
import { LicenseSearch } from "./licenses/LicenseSearch.ts"
import { NothingHere } from "./parts/OneRecord.tsx"
import { OverviewSearch } from "./reports/OverviewSearch.ts"
import { ExportsSearch, LedgerSearch, SummarySearch } from "./reports/UsageSearch.ts"
import { home } from "./service/Address.ts"
import { Frame } from "./shell/Frame.tsx"
import { Failed, lazyRouteComponent } from "./shell/LazyScreen.tsx"
import { Overview } from "./shell/Overview.tsx"
import { CodeSearch, CreatedSearch } from "./tables/CodeSearch.ts"
import { VersionSearch } from "./versions/VersionSearch.ts"

const root = createRootRoute({
  component: Frame,
  notFoundComponent: () => (
    <NothingHere title="There is no such screen">
      <Link to="/" className="button primary">
        Open the overview
      </Link>
    </NothingHere>
  )
})

const at = { getParentRoute: () => root }
const SearchSearch = Schema.Struct({ q: Schema.optionalKey(Schema.String) })
const searchOf = Schema.toStandardSchemaV1

const overview = createRoute({ ...at, path: "/", component: Overview, validateSearch: searchOf(OverviewSearch) })
const search = createRoute({
  ...at,
  path: "/search",
  component: lazyRouteComponent(() => import("./search/SearchPage.tsx"), "SearchPage"),
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
  component: lazyRouteComponent(() => import("./licenses/IssueLicense.tsx"), "IssueLicense"),
  validateSearch: searchOf(IssueSearch)
})
const license = createRoute({
  ...at,
  path: "/licenses/$id",
  component: lazyRouteComponent(() => import("./licenses/LicensePage.tsx"), "LicensePage")
})
const batch = createRoute({
  ...at,
  path: "/licenses/batch",
  validateSearch: searchOf(IssueSearch),
  component: lazyRouteComponent(() => import("./batch/IssueBatch.tsx"), "IssueBatch")
})
const bulkJobs = createRoute({
  ...at,
  path: "/bulk-jobs",
  component: lazyRouteComponent(() => import("./bulk/BulkJobs.tsx"), "BulkJobs"),
  validateSearch: searchOf(BulkSearch)
})
const bulkJob = createRoute({
  ...at,
  path: "/bulk-jobs/$id",
  component: lazyRouteComponent(() => import("./bulk/BulkJobPage.tsx"), "BulkJobPage")
})
const audit = createRoute({
  ...at,
  path: "/licenses/$id/audit",
  component: lazyRouteComponent(() => import("./audit/AuditPage.tsx"), "AuditPage"),
  validateSearch: searchOf(AuditSearch)
})
const devices = createRoute({
  ...at,
  path: "/devices",
  component: lazyRouteComponent(() => import("./devices/AllDevices.tsx"), "AllDevices"),
  validateSearch: searchOf(DeviceSearch)
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
  component: lazyRouteComponent(() => import("./customers/CustomerPage.tsx"), "CustomerPage"),
  validateSearch: searchOf(CustomerPageSearch)
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
const versions = createRoute({
  ...at,
  path: "/products/$id/versions",
  component: lazyRouteComponent(() => import("./versions/Versions.tsx"), "Versions"),
  validateSearch: searchOf(VersionSearch)
})
const version = createRoute({
  ...at,
  path: "/products/$id/versions/$version",
  component: lazyRouteComponent(() => import("./versions/VersionPage.tsx"), "VersionPage")
})
const orders = createRoute({
  ...at,
  path: "/orders",
  component: lazyRouteComponent(() => import("./commerce/Orders.tsx"), "Orders"),
  validateSearch: searchOf(OrderSearch)
})
const order = createRoute({
  ...at,
  path: "/orders/$id",
  component: lazyRouteComponent(() => import("./commerce/OrderPage.tsx"), "OrderPage"),
  validateSearch: searchOf(PeriodSearch)
})
const subscriptions = createRoute({
  ...at,
  path: "/subscriptions",
  component: lazyRouteComponent(() => import("./commerce/Subscriptions.tsx"), "Subscriptions"),
  validateSearch: searchOf(SubscriptionSearch)
})
const subscription = createRoute({
  ...at,
  path: "/subscriptions/$id",
  component: lazyRouteComponent(() => import("./commerce/SubscriptionPage.tsx"), "SubscriptionPage"),
  validateSearch: searchOf(PeriodSearch)
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
  component: lazyRouteComponent(() => import("./access/Webhooks.tsx"), "Webhooks"),
  validateSearch: searchOf(CreatedSearch)
})
const webhook = createRoute({
  ...at,
  path: "/webhooks/$id",
  component: lazyRouteComponent(() => import("./access/WebhookPage.tsx"), "WebhookPage")
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
    batch,
    bulkJobs,
    bulkJob,
    audit,
    devices,
    customers,
    customer,
    products,
    product,
    policy,
    versions,
    version,
    orders,
    order,
    subscriptions,
    subscription,
    apiKeys,
    webhooks,
    webhook,
    usage,
    ledger,
    exports,
    reportExport,
    activity,
    operations
  ]),
  basepath: home,
  defaultErrorComponent: Failed,
  scrollRestoration: true
})

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router
  }
}
