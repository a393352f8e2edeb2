/** The reports. Each is one snapshot of the database, read over connections of their own. */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { limitDefault, type Page } from "../api/Paging.ts"
import { checkScope, periodOf, type Unasked } from "./Asked.ts"
import { customerSummary } from "./CustomerSummary.ts"
import type {
  CustomerSummaryFilter,
  LicenseAuditFilter,
  SettlementFilter,
  UsageLedgerFilter,
  UsageSummaryFilter
} from "./Filter.ts"
import { licenseAudit } from "./LicenseAudit.ts"
import type { CustomerSummary, LicenseAudit, SubscriptionSettlement, UsageLedgerRow, UsageSummary } from "./Report.ts"
import { ReportsDatabase } from "./ReportsDatabase.ts"
import { settlement } from "./Settlement.ts"
import { usageLedger } from "./UsageLedger.ts"
import { usageSummary } from "./UsageSummary.ts"

/** Rows of an answer: more are for an export. */
const rowsMax = 10_000

interface SequencePage {
  readonly limit?: number
  readonly cursor?: number
}

export class Reports extends Context.Service<
  Reports,
  {
    usageSummary(filter: UsageSummaryFilter): Effect.Effect<UsageSummary, Unasked>
    usageLedger(filter: UsageLedgerFilter & SequencePage): Effect.Effect<Page<UsageLedgerRow, number>, Unasked>
    licenseAudit(filter: LicenseAuditFilter & SequencePage): Effect.Effect<LicenseAudit, Unasked>
    customerSummary(filter: CustomerSummaryFilter): Effect.Effect<CustomerSummary, Unasked>
    settlement(filter: SettlementFilter): Effect.Effect<SubscriptionSettlement, Unasked>
  }
>()("licensing/reports/Reports") {
  static readonly layer = Layer.effect(
    Reports,
    Effect.gen(function* () {
      // Whether records are there is asked of the database itself: a replica may not have heard of them yet.
      const primary = yield* SqlClient.SqlClient
      const { snapshot, sql } = yield* ReportsDatabase

      return Reports.of({
        usageSummary: Effect.fn("Reports.usageSummary")(function* (filter: UsageSummaryFilter) {
          yield* checkScope(primary, filter)
          return yield* snapshot(usageSummary(sql, filter, yield* Clock.currentTimeMillis, rowsMax))
        }),
        usageLedger: Effect.fn("Reports.usageLedger")(function* ({
          limit = limitDefault,
          cursor,
          ...filter
        }: UsageLedgerFilter & SequencePage) {
          yield* periodOf(filter, yield* Clock.currentTimeMillis)
          yield* checkScope(primary, filter)
          return yield* snapshot(usageLedger(sql, filter, cursor === undefined ? { limit } : { limit, cursor }))
        }),
        licenseAudit: Effect.fn("Reports.licenseAudit")(function* (filter: LicenseAuditFilter & SequencePage) {
          yield* checkScope(primary, { license_id: filter.license_id })
          return yield* snapshot(licenseAudit(sql, { limit: limitDefault, ...filter }, yield* Clock.currentTimeMillis))
        }),
        customerSummary: Effect.fn("Reports.customerSummary")(function* (filter: CustomerSummaryFilter) {
          yield* checkScope(primary, { customer_id: filter.customer_id })
          return yield* snapshot(customerSummary(sql, filter, yield* Clock.currentTimeMillis, rowsMax))
        }),
        settlement: Effect.fn("Reports.settlement")(function* (filter: SettlementFilter) {
          const { from: _, to: __, ...scope } = filter
          yield* checkScope(primary, scope)
          return yield* snapshot(settlement(sql, filter, yield* Clock.currentTimeMillis, rowsMax))
        })
      })
    })
  )
}
