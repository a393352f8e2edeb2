/**
 * The PDF content of each report, read only from the stored snapshot of an export. Totals and charts cover all rows; only the rows
 * that are printed stay in memory.
 */
import type { Json } from "../../../contract/api/CanonicalJson.ts"
import { dayMillis } from "../../../contract/api/Timestamp.ts"
import type { ReportKind } from "../model/Filter.ts"
import type { ReportPeriod } from "../model/Report.ts"
import { makeSnapshotReader, type SnapshotReader } from "../usage/SnapshotReader.ts"
import { cellText, emptyCell, groupDigits, type PdfModel, pdfRowsMax, utcSecond } from "./PdfModel.ts"
import { type CellFormatter, type Fields, identifierCell, labelOf, tableOf, timeCell } from "./PdfModelTables.ts"
import { chartOf, timeOf, zonedTime } from "./PdfTime.ts"

interface SnapshotContent {
  /** The report without the rows of its long list. */
  readonly report: Fields
  readonly rows: ReadonlyArray<Fields>
  readonly count: number
  readonly sums: Sums
  readonly buckets: ReadonlyMap<number, bigint>
}

interface PdfReport {
  readonly title: string
  readonly listPath: ReadonlyArray<string>
  readonly toModel: (read: SnapshotContent, export_: Fields) => Omit<PdfModel, "title">
}

export const makePdfModelReader = (kind: ReportKind): SnapshotReader & { model(): PdfModel } => {
  const { listPath, toModel, title } = pdfReports[kind]
  const rows: Array<Fields> = []
  const sums: Record<keyof Sums, bigint> = {
    consumed: 0n,
    consumptions: 0n,
    reversed: 0n,
    reset: 0n,
    topped_up: 0n,
    credits_used: 0n,
    overage: 0n
  }
  const buckets = new Map<number, bigint>()
  let count = 0
  const reader = makeSnapshotReader(listPath, (row) => {
    const fields = row as Fields
    if (count++ < pdfRowsMax) rows.push(fields)
    addRow(fields, sums, buckets)
  })
  return {
    ...reader,
    model: () => {
      const whole = reader.rest() as Fields
      const report = (whole["report"] ?? whole) as Fields
      return { title, ...toModel({ report, rows, count, sums, buckets }, whole) }
    }
  }
}

type Sums = { readonly [K in (typeof usageFields)[number]]: bigint }

const addRow = (row: Fields, sums: Record<keyof Sums, bigint>, buckets: Map<number, bigint>) => {
  const consumed = row["action"] === "consume" ? row["amount"] : row["consumed"]
  if (typeof consumed === "number") {
    sums.consumed += BigInt(consumed)
    const at = timeOf(row["bucket_start"] ?? row["occurred_at"])
    const start = row["bucket_start"] === undefined ? Math.floor(at / dayMillis) * dayMillis : at
    if (at > 0) buckets.set(start, (buckets.get(start) ?? 0n) + BigInt(consumed))
  }
  const { action, amount, credits, overage } = row
  if (action === "consume") sums.consumptions++
  if (action === "reverse") sums.reversed -= BigInt(amount as number)
  if (action === "reset" || action === "period_reset") sums.reset += BigInt(amount as number)
  if (action === "top_up") sums.topped_up += BigInt(amount as number)
  if ((action === "consume" || action === "reverse") && typeof credits === "number")
    sums.credits_used -= BigInt(credits)
  if (action !== undefined && typeof overage === "number") sums.overage += BigInt(overage)
}

const factsOf = ({ report }: SnapshotContent, export_: Fields, more: PdfModel["facts"] = []): PdfModel["facts"] => {
  const { events_removed_until, from, removed_until, to } = (report["period"] ?? {}) as Partial<
    typeof ReportPeriod.Encoded
  >
  const filters = Object.entries(export_["filters"] as Fields).map(([name, value]) => `${name} ${filterText(value)}`)
  return [
    ...more,
    [
      "Period",
      `${from === undefined || from === epoch ? "from the beginning" : `${utcSecond(from)} UTC`} to ${utcSecond(to ?? "")} UTC`
    ],
    ...(removed_until === undefined ? [] : [["Usage removed until", `${utcSecond(removed_until)} UTC`] as const]),
    ...(events_removed_until === undefined
      ? []
      : [["Events removed until", `${utcSecond(events_removed_until)} UTC`] as const]),
    ["Filters", filters.length === 0 ? "none" : filters.join("  ·  ")],
    ["Generated at", `${utcSecond(String(export_["generated_at"]))} UTC`]
  ]
}
const epoch = "1970-01-01T00:00:00.000Z"
const filterText = (value: Json): string =>
  Array.isArray(value) ? value.join(", ") : typeof value === "string" ? value : cellText(value)

const usageFields = ["consumed", "consumptions", "reversed", "reset", "topped_up", "credits_used", "overage"] as const

const usageFigures = (totals: { readonly [name: string]: Json | bigint }): PdfModel["figures"] =>
  usageFields.map((field) => [labelOf(field), groupDigits(totals[field] as number | bigint)])

const balanceFields = [
  ...["license_id", "feature_code", "opening_balance", "consumed", "reversed", "reset", "restarted", "closing_balance"],
  ...["topped_up", "overage", "max_after"]
]

const joinedFact = (name: string, ...parts: ReadonlyArray<Json | undefined>): readonly [string, string] => [
  name,
  parts.filter((part) => part !== undefined && part !== null).join("  ·  ")
]

const pdfReports: { readonly [K in ReportKind]: PdfReport } = {
  "usage-summary": {
    title: "Usage summary",
    listPath: ["report", "rows"],
    toModel: (read, export_) => {
      const { bucket, group_by, totals, tz } = read.report as Fields & { readonly group_by: ReadonlyArray<string> }
      const zone = zonedTime(String(tz), bucket === "1h")
      const fields = [...(bucket === undefined ? [] : ["bucket_start"]), ...group_by, ...usageFields, "licenses"]
      const time: CellFormatter = (value) => (typeof value === "string" ? zone.text(timeOf(value)) : emptyCell)
      return {
        facts: factsOf(read, export_, bucket === undefined ? [] : [["Time zone", String(tz)]]),
        figures: usageFigures(totals as Fields),
        ...(bucket === undefined ? undefined : chartOf(read, bucket === "1h" ? "hour" : "day", zone)),
        tables: [
          tableOf("Usage", fields, read.rows, {
            count: read.count,
            totals: totals as Fields,
            cells: { bucket_start: time }
          })
        ]
      }
    }
  },
  "usage-ledger": {
    title: "Usage ledger",
    listPath: ["rows"],
    toModel: (read, export_) => ({
      facts: factsOf(read, export_),
      figures: [["Rows", groupDigits(read.count)], ...usageFigures(read.sums)],
      ...chartOf(read, "day", zonedTime("UTC", false)),
      tables: [
        tableOf(
          "Changes of counters",
          [
            ...["sequence", "occurred_at", "action", "license_id", "feature_code", "event_id", "amount"],
            ...["balance_before", "balance_after", "max_after", "actor"]
          ],
          read.rows.map((row) => ({
            ...row,
            actor: row["actor_id"] === row["license_id"] ? "the license" : (row["actor_name"] ?? row["actor_id"]!)
          })),
          { count: read.count, cells: { occurred_at: timeCell, sequence: identifierCell } }
        )
      ]
    })
  },
  "license-audit": {
    title: "License audit",
    listPath: ["report", "events"],
    toModel: (read, export_) => {
      const { features, license, usage } = read.report as {
        readonly [K in "features" | "usage"]: ReadonlyArray<Fields>
      } & { readonly license: Fields }
      return {
        facts: factsOf(read, export_, licenseFacts(license)),
        figures: [
          ["Consumed in all", cellText(license["total_consumptions"])],
          ["Active devices", cellText(license["active_device_count"])],
          ["Activations", cellText(license["times_activated"])],
          ["Transfers", cellText(license["times_transferred"])],
          ["Events in the period", groupDigits(read.count)]
        ],
        tables: [
          tableOf(
            "Features",
            [
              "feature_code",
              "feature_name",
              "enabled",
              "total_consumptions",
              "max_consumptions",
              "remaining",
              "expires_at"
            ],
            features,
            { cells: { expires_at: timeCell } }
          ),
          tableOf("Usage in the period", balanceFields.slice(1), usage),
          tableOf(
            "Events",
            ["sequence", "created_at", "event_type", "actor_type", "actor_id", "actor_name", "ip_address", "metadata"],
            read.rows,
            { count: read.count, cells: { sequence: identifierCell, created_at: timeCell } }
          )
        ]
      }
    }
  },
  "customer-summary": {
    title: "Customer summary",
    listPath: ["report", "usage"],
    toModel: (read, export_) => {
      const { active_devices, customer, licenses, live_leases, orders, subscriptions, totals } = read.report as {
        readonly [name: string]: Fields
      }
      const tallies = Object.entries({ licenses, orders, subscriptions }).flatMap(([of, tally]) =>
        Object.entries(tally!["by_status"] as Fields).map(([status, count]) => ({ of, status, count }))
      )
      return {
        facts: factsOf(read, export_, [
          joinedFact("Customer", customer!["name"], customer!["code"], customer!["email"], customer!["id"])
        ]),
        figures: [
          ["Licenses", cellText(licenses!["total"])],
          ["Active devices", cellText(active_devices)],
          ["Live leases", cellText(live_leases)],
          ...usageFigures(totals!).slice(0, 2)
        ],
        tables: [
          tableOf("Licenses, orders and subscriptions", ["of", "status", "count"], tallies),
          tableOf(
            "Usage by product and feature",
            ["product_id", "feature_code", ...usageFields, "licenses"],
            read.rows,
            {
              count: read.count,
              totals: totals!
            }
          )
        ]
      }
    }
  },
  "subscription-settlement": {
    title: "Subscription settlement",
    listPath: ["report", "lines"],
    toModel: (read, export_) => {
      const { by_feature, order, subscription, totals } = read.report as {
        readonly [K in "order" | "subscription"]?: Fields
      } & { readonly by_feature: ReadonlyArray<Fields>; readonly totals: Fields }
      return {
        facts: factsOf(read, export_, [...externalFact("Subscription", subscription), ...externalFact("Order", order)]),
        figures: usageFigures(totals),
        tables: [
          tableOf("By feature", ["feature_code", ...usageFields], by_feature, { totals }),
          tableOf("By license and feature", balanceFields, read.rows, {
            count: read.count,
            totals: { consumed: totals["consumed"]!, reset: totals["reset"]!, topped_up: totals["topped_up"]! }
          })
        ]
      }
    }
  }
}

const licenseFacts = (license: Fields): PdfModel["facts"] => [
  joinedFact(
    "License",
    license["id"],
    `${license["license_key_prefix"]}…${license["license_key_last4"]}`,
    license["status"]
  ),
  joinedFact("Product", license["product_id"]),
  joinedFact("Customer", license["customer_name"], license["customer_email"], license["customer_id"]),
  ["Expires at", license["expires_at"] === undefined ? "never" : `${timeCell(license["expires_at"])} UTC`]
]

const externalFact = (name: string, record: Fields | undefined): PdfModel["facts"] =>
  record === undefined
    ? []
    : [joinedFact(name, record["external_system"], record["external_id"], record["status"], record["id"])]
