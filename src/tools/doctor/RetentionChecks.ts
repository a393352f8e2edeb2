/** Shows what the retention of events and of the ledger will remove. */
import { Clock, Effect } from "effect"
import { parents } from "../../ledger/partitions/PartitionEnd.ts"
import { type PlanRow, planOf, planQuery, retentionDaysOf } from "../../ledger/partitions/RetentionPlan.ts"
import { Settings } from "../../platform/config/Config.ts"
import { instant } from "../../platform/postgres/driver/Parameters.ts"
import { type Finding, ok, warn } from "./Check.ts"
import type { Database, Row } from "./Database.ts"

const dayMillis = 86_400_000

export const checkRetention = Effect.fnUntraced(function* ({ row }: Database) {
  const check = "retention"
  const settings = yield* Settings
  const now = yield* Clock.currentTimeMillis
  const findings: Array<Finding> = []
  for (const parent of parents) {
    const days = retentionDaysOf(settings, parent)
    if (days === 0) continue
    const plan = yield* row<PlanRow & Row>(planQuery(parent), [instant(now - days * dayMillis)])
    const { isLate, message } = planOf(parent, plan, days, now)
    findings.push(isLate ? warn(check, message, advice) : ok(check, message))
  }
  return findings
})

const advice =
  "That is more than twice the retention. A node ends the partition sooner within minutes, if it can; see docs/OPERATIONS.md, Retention."
