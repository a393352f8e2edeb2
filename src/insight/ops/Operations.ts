import { Context, Effect, Layer, Option } from "effect"
import { Workers } from "../../platform/workers/Workers.ts"
import { OpsCounts } from "./Counts.ts"
import { type OpsErrors, OpsSummary } from "./Ops.ts"
import { RecentErrors } from "./RecentErrors.ts"

export class Operations extends Context.Service<
  Operations,
  {
    readonly summary: Effect.Effect<OpsSummary>
    readonly errors: Effect.Effect<OpsErrors>
  }
>()("licensing/insight/ops/Operations") {
  static readonly layer = Layer.effect(
    Operations,
    Effect.gen(function* () {
      const counts = yield* OpsCounts
      const errors = yield* RecentErrors
      const workers = yield* Effect.serviceOption(Workers)
      const statuses = Option.isSome(workers) ? workers.value.statuses : Effect.succeed([])

      const summary = Effect.fn("Operations.summary")(function* () {
        const { rows, leasesLive, eventSequence } = yield* counts.read
        const workerStatuses = yield* statuses
        return {
          licenses: totals(rows, "licenses", OpsSummary.fields.licenses),
          devices: totals(rows, "devices", OpsSummary.fields.devices),
          leases: { live: leasesLive },
          products: rows.get("products") ?? 0,
          customers: rows.get("customers") ?? 0,
          event_sequence: eventSequence,
          workers: workerStatuses.map(({ dead, ...status }) => ({
            ...status,
            status: dead ? ("dead" as const) : status.failures === 0 ? ("ok" as const) : ("failing" as const)
          }))
        }
      })

      const report = Effect.sync((): OpsErrors => {
        const { since, recent, counts } = errors.report
        return { since, recent, counts: Object.fromEntries(counts) }
      })

      return Operations.of({ summary: summary(), errors: report })
    })
  )
}

const totals = <Fields extends { readonly [name: string]: unknown }>(
  rows: ReadonlyMap<string, number>,
  table: string,
  schema: { readonly fields: Fields }
): { readonly [K in keyof Fields]: number } => {
  const statuses = Object.keys(schema.fields).filter((name) => name !== "total")
  const counts = statuses.map((status) => [status, rows.get(`${table}.${status}`) ?? 0] as const)
  const total = counts.reduce((sum, [, count]) => sum + count, 0)
  return Object.fromEntries([["total", total], ...counts]) as { readonly [K in keyof Fields]: number }
}
