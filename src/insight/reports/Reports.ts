/** The reports. Each one is read in a single database snapshot, over connections reserved for reports. */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentProducts } from "../../access/CurrentActor.ts"
import { limitDefault, type Page } from "../../contract/api/Paging.ts"
import type { Attention, AttentionFilter } from "./model/Attention.ts"
import type {
  CustomerSummaryFilter,
  LicenseAuditFilter,
  OfToken,
  SettlementFilter,
  UsageLedgerFilter,
  UsageSummaryFilter
} from "./model/Filter.ts"
import type { Overview, OverviewFilter } from "./model/Overview.ts"
import type {
  CustomerSummary,
  LicenseAudit,
  SubscriptionSettlement,
  UsageLedgerRow,
  UsageSummary
} from "./model/Report.ts"
import { ReportsDatabase } from "./model/ReportsDatabase.ts"
import { checkScope, periodOf, type ReportRefusal } from "./model/RequestChecks.ts"
import { attention } from "./overview/AttentionReport.ts"
import { overview } from "./overview/OverviewReport.ts"
import { customerSummary } from "./usage/CustomerSummary.ts"
import { licenseAudit } from "./usage/LicenseAudit.ts"
import { settlement } from "./usage/Settlement.ts"
import { usageLedger } from "./usage/UsageLedger.ts"
import { usageSummary } from "./usage/UsageSummary.ts"

/** Larger reports need an export. */
const rowsMax = 10_000

interface SequencePage {
  readonly limit?: number
  readonly cursor?: number
}

export class Reports extends Context.Service<
  Reports,
  {
    usageSummary(filter: UsageSummaryFilter): Effect.Effect<UsageSummary, ReportRefusal>
    usageLedger(filter: UsageLedgerFilter & SequencePage): Effect.Effect<Page<UsageLedgerRow, number>, ReportRefusal>
    licenseAudit(filter: LicenseAuditFilter & SequencePage): Effect.Effect<LicenseAudit, ReportRefusal>
    customerSummary(filter: CustomerSummaryFilter): Effect.Effect<CustomerSummary, ReportRefusal>
    overview(filter: OverviewFilter): Effect.Effect<Overview, ReportRefusal>
    attention(filter: AttentionFilter): Effect.Effect<Attention, ReportRefusal>
    settlement(filter: SettlementFilter): Effect.Effect<SubscriptionSettlement, ReportRefusal>
  }
>()("licensing/insight/reports/Reports") {
  static readonly layer = Layer.effect(
    Reports,
    Effect.gen(function* () {
      // The primary database decides whether records exist: a replica may not have received them yet.
      const primary = yield* SqlClient.SqlClient
      const { snapshot, sql } = yield* ReportsDatabase

      const ofToken = Effect.map(CurrentProducts, (products): OfToken => (products === undefined ? {} : { products }))

      return Reports.of({
        usageSummary: Effect.fn("Reports.usageSummary")(function* (query: UsageSummaryFilter) {
          const filter = { ...query, ...(yield* ofToken) }
          yield* checkScope(primary, filter)
          return yield* snapshot(usageSummary(sql, filter, yield* Clock.currentTimeMillis, rowsMax))
        }),
        usageLedger: Effect.fn("Reports.usageLedger")(function* ({
          limit = limitDefault,
          cursor,
          ...query
        }: UsageLedgerFilter & SequencePage) {
          const filter = { ...query, ...(yield* ofToken) }
          yield* periodOf(filter, yield* Clock.currentTimeMillis)
          yield* checkScope(primary, filter)
          return yield* snapshot(usageLedger(sql, filter, cursor === undefined ? { limit } : { limit, cursor }))
        }),
        licenseAudit: Effect.fn("Reports.licenseAudit")(function* (filter: LicenseAuditFilter & SequencePage) {
          yield* checkScope(primary, { license_id: filter.license_id, ...(yield* ofToken) })
          return yield* snapshot(licenseAudit(sql, { limit: limitDefault, ...filter }, yield* Clock.currentTimeMillis))
        }),
        customerSummary: Effect.fn("Reports.customerSummary")(function* (query: CustomerSummaryFilter) {
          const filter = { ...query, ...(yield* ofToken) }
          yield* checkScope(primary, { customer_id: filter.customer_id, ...(yield* ofToken) })
          return yield* snapshot(customerSummary(sql, filter, yield* Clock.currentTimeMillis, rowsMax))
        }),
        overview: Effect.fn("Reports.overview")(function* (filter: OverviewFilter) {
          const own = yield* ofToken
          yield* checkScope(primary, { ...filter, ...own })
          const products = filter.product_id === undefined ? own.products : [filter.product_id]
          return yield* snapshot(overview(sql, filter, products, yield* Clock.currentTimeMillis))
        }),
        attention: Effect.fn("Reports.attention")(function* (filter: AttentionFilter) {
          const own = yield* ofToken
          yield* checkScope(primary, { ...filter, ...own })
          const products = filter.product_id === undefined ? own.products : [filter.product_id]
          const found = yield* snapshot(attention(sql, products, yield* Clock.currentTimeMillis))
          return { ...filter, ...found }
        }),
        settlement: Effect.fn("Reports.settlement")(function* (filter: SettlementFilter) {
          const { from: _, to: __, ...scope } = filter
          yield* checkScope(primary, { ...scope, ...(yield* ofToken) })
          return yield* snapshot(settlement(sql, filter, yield* Clock.currentTimeMillis, rowsMax))
        })
      })
    })
  )
}
