/** The events of a filled database, and consumptions, which are ledger rows. */
import { chance, created, id, type Statement } from "./scaleValues.ts"

interface Sizes {
  readonly events: number
  readonly licenses: number
}

/**
 * The n-th event: its kind, a number and a name, and its license. Nearly half of all are consumptions, the seventh
 * kind.
 */
const happened = ({ events, licenses }: Sizes) => `
  (SELECT ARRAY['customer.created', 'license.created', 'license.updated', 'license.expired', 'license.activated',
     'license.deactivated', 'usage.consumed'] AS kinds, last FROM event_sequence) names, generate_series(1, ${events}) n,
   LATERAL (SELECT CASE WHEN n % 10000 = 0 THEN 1 WHEN n % 1000 = 0 THEN 4 WHEN n % 20 = 0 THEN 3 WHEN n % 20 < 5 THEN 2
       WHEN n % 20 < 10 THEN 5 WHEN n % 20 = 10 THEN 6 ELSE 7 END AS k,
     ${id("lic", `${chance("n", 3)} % ${licenses} + 1`)} AS license) of`

/** The events of the first years, when a consumption was written as an event beside its ledger row. */
const early = ({ events }: Sizes) => `n < ${Math.floor(events / 4)}`

export const happenings = (sizes: Sizes, feature: string): ReadonlyArray<Statement> => [
  [
    "event_log",
    `INSERT INTO event_log (sequence, event_type, actor_type, actor_id, resource_type, resource_id, ip_address, metadata, created_at)
     SELECT last + n, kinds[k], CASE WHEN k > 4 THEN 'license' WHEN k = 4 THEN 'system' ELSE 'api_key' END, license,
       CASE WHEN k = 1 THEN 'customer' ELSE 'license' END, license, '192.0.2.1',
       jsonb_build_object('request_id', 'req_' || n, 'feature_code', 'export', 'amount', 1), ${created("n", sizes.events)}
     FROM ${happened(sizes)} WHERE k < 7 OR ${early(sizes)}`
  ],
  [
    "usage_ledger",
    `INSERT INTO usage_ledger (sequence, license_id, feature_id, action, event_id, amount, balance_after, device_id, actor_type,
       actor_id, request_id, occurred_at, event_sequence, event_feature_code, event_ip_address)
     SELECT n / 20 * 9 + n % 20 - 10, license, '${feature}', 'consume', 'event-' || n, 1, n, ${id("dev", "n")}, 'license',
       license, 'req_' || n, ${created("n", sizes.events)}, CASE WHEN ${early(sizes)} THEN NULL ELSE last + n END,
       CASE WHEN ${early(sizes)} THEN NULL ELSE 'export' END, '192.0.2.1'
     FROM ${happened(sizes)} WHERE k = 7`
  ]
]
