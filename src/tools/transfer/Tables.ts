/**
 * What an export contains, and in which order: a line is a row of one of these tables, with the names of its columns. What must
 * stay true: a line follows all lines that it refers to, and a part follows its record, because both are imported together.
 */
import type { EventType, ResourceType } from "../../ledger/events/EventType.ts"
import { recordedUrl } from "../../ledger/webhooks/Webhooks.ts"
import { limitNames } from "../../licensing/model/Limits.ts"
import type { Row } from "./Lines.ts"

export interface Table {
  /** The `type` of its lines. */
  readonly type: string
  readonly name: string
  /** The columns that identify a row, in the order of the lines. */
  readonly key: ReadonlyArray<string>
  /** Of a part: the column with the id of its record. */
  readonly parent?: string
  readonly where?: string
  /** Columns that stay behind. */
  readonly omitted?: ReadonlyArray<string>
  /** The column of the revision, which an import draws anew. */
  readonly revision?: string
  /** Rows of the tables that follow are not written before all of these are committed, although they do not refer to them. */
  readonly isAwaited?: boolean
  /** int64 columns that may be beyond 2^53: they are text in the lines. */
  readonly asText?: ReadonlyArray<string>
  /** The event of an imported row, and the columns that it names. */
  readonly event?: { readonly type: EventType; readonly resource: ResourceType; readonly named: ReadonlyArray<string> }
  /** The columns that its event shows differently. */
  readonly shown?: (row: Row) => Row
}

/** A record, and the parts that are imported together with it. */
export interface TableGroup {
  readonly root: Table
  readonly parts: ReadonlyArray<Table>
}

const created = <R extends ResourceType>(resource: R, ...named: ReadonlyArray<string>) =>
  ({ event: { type: `${resource}.created` as EventType, resource, named } }) as const

const products: TableGroup = {
  root: { type: "product", name: "products", key: ["id"], revision: "catalog_revision", ...created("product", "code") },
  parts: [
    {
      ...{ type: "feature", name: "features", key: ["id"], parent: "product_id" },
      ...created("feature", "product_id", "code")
    },
    {
      ...{ type: "product_version", name: "product_versions", key: ["id"], parent: "product_id" },
      ...created("product_version", "product_id", "version", "released_at")
    },
    {
      ...{ type: "custom_field", name: "custom_field_definitions", key: ["id"], parent: "product_id" },
      ...created("custom_field", "product_id", "code", "resource_type")
    }
  ]
}

const policies: TableGroup = {
  root: {
    ...{ type: "policy", name: "policies", key: ["id"], revision: "revision" },
    ...created("policy", "product_id", "code", "license_type")
  },
  parts: [{ type: "policy_feature", name: "policy_features", key: ["policy_id", "feature_id"], parent: "policy_id" }]
}

const fieldValues = (owner: "customer" | "license"): Table => ({
  type: `${owner}_custom_field_value`,
  name: "custom_field_values",
  key: [`${owner}_id`, "definition_id"],
  parent: `${owner}_id`,
  where: `${owner}_id IS NOT NULL`
})

const licenses: TableGroup = {
  root: {
    ...{ type: "license", name: "licenses", key: ["id"], revision: "revision" },
    ...created(
      "license",
      "product_id",
      "policy_id",
      "customer_id",
      "order_id",
      "subscription_id",
      "starts_at",
      "expires_at",
      "maintenance_expires_at",
      "status",
      ...limitNames
    )
  },
  parts: [
    { type: "license_feature", name: "license_features", key: ["license_id", "feature_id"], parent: "license_id" },
    { type: "device", name: "devices", key: ["id"], parent: "license_id" },
    { type: "lease", name: "leases", key: ["id"], parent: "license_id", where: "status = 'live'" },
    fieldValues("license")
  ]
}

const alone = (root: Table): TableGroup => ({ root, parts: [] })

export const tableGroups: ReadonlyArray<TableGroup> = [
  products,
  policies,
  {
    root: {
      type: "customer",
      name: "customers",
      key: ["id"],
      omitted: ["erasure_revision"],
      ...created("customer", "code")
    },
    parts: [fieldValues("customer")]
  },
  alone({
    ...{ type: "subscription", name: "subscriptions", key: ["id"] },
    ...created("subscription", "product_id", "external_system", "external_id", "status")
  }),
  alone({
    ...{ type: "order", name: "orders", key: ["id"] },
    ...created("order", "product_id", "external_system", "external_id", "status")
  }),
  // Before the licenses: a consumption that is repeated after the move is not counted a second time.
  alone({
    type: "used_event_id",
    name: "usage_event_ids",
    key: ["license_digest", "event_digest_rest", "event_digest"],
    asText: ["event_digest", "feature_digest"],
    isAwaited: true
  }),
  // Before the licenses, too: a trial that was used is not given again.
  alone({
    ...{ type: "public_trial", name: "public_trials" },
    key: ["product_id", "binding_kind", "binding_hash"],
    isAwaited: true
  }),
  licenses,
  alone({ type: "signing_key", name: "signing_keys", key: ["kid"] }),
  alone({
    ...{ type: "api_key", name: "api_keys", key: ["id"] },
    ...created("api_key", "name", "key_prefix", "scopes", "allowed_cidrs", "product_ids"),
    shown: ({ limited_scopes, scopes }) => ({ scopes: limited_scopes ?? scopes })
  }),
  // Last, so that the events of an import are not delivered to the endpoints that it brings.
  alone({
    ...{ type: "webhook", name: "webhook_endpoints", key: ["id"], revision: "revision" },
    ...created("webhook", "name", "url", "event_types", "is_active"),
    shown: ({ url }) => ({ url: recordedUrl(String(url)) })
  })
]

/** Tables that stay behind, each with the reason. */
export const leftOut: Readonly<Record<string, string>> = {
  license_states: "Written with each license.",
  event_sequence: "The counters of this database.",
  event_log: "History: its numbers belong to one database.",
  usage_ledger: "History: its numbers belong to one database. Counters and used event ids are exported.",
  waiting_entries: "History that gets its numbers within milliseconds.",
  usage_rollup: "Sums of the ledger.",
  usage_rollup_progress: "Sums of the ledger.",
  usage_rollup_days: "Sums of the ledger.",
  sequence_partitions: "Partitions of the history.",
  event_id_copy: "An export waits until it is finished.",
  event_spans: "An index of the history.",
  webhook_deliveries: "Belong to events.",
  webhook_delivery_counts: "Belong to deliveries.",
  mails: "Waiting mails are sent by the installation that queued them, and none is sent twice.",
  mail_counts: "Belong to mails.",
  report_exports: "Made again when they are wanted.",
  report_export_chunks: "Made again when they are wanted.",
  bulk_jobs: "History.",
  bulk_job_parts: "History.",
  bulk_job_refusals: "History.",
  portal_sessions: "Customers sign in again.",
  portal_links: "Customers ask for another one.",
  refusals: "History.",
  activity_offsets: "An index of the history.",
  license_validations: "History.",
  handovers: "The state of running nodes.",
  nodes: "The state of running nodes.",
  idempotent_answers: "Answers to requests of one installation.",
  erasures: "An export waits until they are finished.",
  erasure_records: "An export waits until they are finished.",
  erasure_progress: "Belongs to the exports of reports and to stored responses.",
  overview_counts: "Sums of the history.",
  overview_progress: "Sums of the history.",
  license_samples: "History.",
  license_numbers: "Counted again every minute.",
  vendor_key_use: "In the header of an export.",
  journals: "The state of running nodes.",
  cluster_runners: "The state of running nodes.",
  schema_migrations: "Belongs to the schema."
}
