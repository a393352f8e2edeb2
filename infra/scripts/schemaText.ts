/**
 * The schema of a database as SQL text, read from the catalog and grouped by resource: the same schema always gives the same
 * text, in any order of migrations. What must stay true: no part of the schema is left out without an error.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const header = `-- The whole schema as the migrations leave it, for reading and for review. Generated; do not edit.`

interface Group {
  readonly title: string
  /** Functions, tables and views in the order of their dependencies. */
  readonly objects: ReadonlyArray<string>
}

/** The order of schema/migrations/0001_initial.sql. */
const resources: ReadonlyArray<Group> = [
  { title: "Products", objects: ["products"] },
  { title: "Policies", objects: ["policies"] },
  { title: "Features", objects: ["features", "policy_features"] },
  { title: "Versions", objects: ["product_versions"] },
  { title: "Customers", objects: ["search_text", "search_grams", "search_query", "customers"] },
  { title: "Subscriptions and orders", objects: ["subscriptions", "orders"] },
  {
    title: "Licenses",
    objects: ["licenses", "license_features", "vendor_key_use", "public_trials"]
  },
  { title: "License states", objects: ["license_notice", "license_states", "keep_license_state"] },
  { title: "Custom fields", objects: ["custom_field_definitions", "custom_field_values"] },
  { title: "Devices", objects: ["fingerprint_hash", "devices"] },
  { title: "Leases", objects: ["leases"] },
  { title: "Events and usage ledger", objects: ["event_sequence", "event_log", "usage_ledger", "events"] },
  {
    title: "Entries that wait for their numbers",
    objects: ["waiting_entries", "waiting_since", "subscribes", "number_waiting_entries"]
  },
  {
    title: "Partitions of events and usage ledger",
    objects: ["sequence_partitions", "make_partition", "ends_partitions", "event_numbered"]
  },
  {
    title: "Event ids of consumptions",
    objects: [
      "usage_event_ids",
      "earlier_event_ids",
      "event_id_copy",
      "copy_event_ids",
      "counted_event",
      "keep_event_ids"
    ]
  },
  { title: "Usage sums", objects: ["usage_rollup", "usage_rollup_progress", "usage_rollup_days"] },
  { title: "Webhooks", objects: ["webhook_endpoints", "webhook_deliveries", "webhook_delivery_counts"] },
  { title: "Mails", objects: ["mails", "mail_counts"] },
  { title: "Bulk jobs", objects: ["bulk_jobs", "bulk_job_parts", "bulk_job_refusals"] },
  { title: "The customer's page", objects: ["portal_sessions", "portal_links"] },
  { title: "Report exports", objects: ["report_exports", "report_export_chunks"] },
  { title: "Overview", objects: ["overview_counts", "overview_progress", "license_numbers", "license_samples"] },
  {
    title: "Erasures",
    objects: ["erasures", "erasure_records", "erasure_progress", "refuse_erasing_customer", "refuse_erasing_link"]
  },
  {
    title: "Activities",
    objects: ["refusals", "activity_offsets", "event_spans", "license_validations", "handovers"]
  },
  { title: "API keys", objects: ["api_keys"] },
  { title: "Idempotency", objects: ["answered_license", "idempotent_answers"] },
  { title: "Signing keys", objects: ["signing_keys"] },
  { title: "Journal", objects: ["journals", "nodes", "demand"] },
  { title: "Cluster", objects: ["cluster_runners"] },
  { title: "Migrations", objects: ["schema_migrations"] }
]

/**
 * The extensions, and every function, table and view of the schema public; a table with its columns, constraints, comment and
 * indexes, a trigger beside its function. Any other object is a defect. The partitions of a table are not part of its schema: a
 * worker makes them while the service runs.
 */
export const schemaText = Effect.fn("SchemaText.schemaText")(function* () {
  const sql = yield* SqlClient.SqlClient
  const unknown = yield* unknownObjects(sql)
  if (unknown.length > 0) {
    return yield* Effect.die(
      new Error(`The schema text cannot show ${unknown.map(({ object }) => object).join(", ")}.`)
    )
  }
  const extensions = yield* extensionLines(sql)
  const tables = yield* tableLines(sql)
  const details = yield* detailLines(sql)
  const functions = yield* functionLines(sql)
  const views = yield* viewLines(sql)
  const texts = new Map([...functions, ...tables, ...views].map(({ definition, name }) => [name, definition]))
  const listed = new Set(resources.flatMap(({ objects }) => objects))
  const others = { title: "Others", objects: Array.from(texts.keys()).filter((name) => !listed.has(name)) }
  const sections = [...resources, others].flatMap(({ objects, title }) => {
    const shown = objects.flatMap((name) => {
      const text = texts.get(name)
      return text === undefined ? [] : [[text, ...details.filter(({ owner }) => owner === name).map(lineOf)].join("\n")]
    })
    return shown.length === 0 ? [] : [`-- ${title}`, ...shown]
  })
  return `${[header, ...extensions.map(lineOf), ...sections].join("\n\n")}\n`
})

const lineOf = ({ definition }: { readonly definition: string }) => definition

// Objects that belong to an identity column or an extension are part of it.
const unknownObjects = (sql: SqlClient.SqlClient) => sql<{ object: string }>`
  SELECT object FROM (
    SELECT oid, format('relation %s of kind %s', relname, relkind) AS object FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind NOT IN ('r', 'p', 'i', 'I', 'v')
    UNION ALL SELECT oid, format('procedure %s', proname) FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND prokind <> 'f'
    UNION ALL SELECT oid, format('type %s', typname) FROM pg_type
    WHERE typnamespace = 'public'::regnamespace AND typtype IN ('e', 'd', 'r')
    UNION ALL SELECT oid, format('row policy %s', polname) FROM pg_policy
    UNION ALL SELECT oid, format('second object named %s', proname) FROM pg_proc routine
    WHERE pronamespace = 'public'::regnamespace AND (
      EXISTS (SELECT FROM pg_proc other WHERE other.proname = routine.proname AND other.pronamespace = routine.pronamespace
        AND other.oid < routine.oid)
      OR EXISTS (SELECT FROM pg_class WHERE relname = proname AND relnamespace = pronamespace))
    UNION ALL SELECT oid, format('comment on the function %s', proname) FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND obj_description(oid, 'pg_proc') IS NOT NULL
    UNION ALL SELECT class.oid, format('comment on %s of kind %s', relname, relkind) FROM pg_class class
    JOIN pg_description ON objoid = class.oid AND classoid = 'pg_class'::regclass
    WHERE relnamespace = 'public'::regnamespace AND (objsubid <> 0 OR relkind NOT IN ('r', 'p', 'v'))
  ) AS objects
  WHERE NOT EXISTS (SELECT FROM pg_depend WHERE objid = objects.oid AND deptype IN ('i', 'e'))
  ORDER BY object`

const extensionLines = (sql: SqlClient.SqlClient) => sql<{ definition: string }>`
  SELECT format('CREATE EXTENSION %I;', extname) AS definition FROM pg_extension WHERE extname <> 'plpgsql'
  ORDER BY extname COLLATE "C"`

interface Named {
  readonly name: string
  readonly definition: string
}

/** Columns in their order, then the constraints by name. Constraints of kind n are PostgreSQL 18's names for NOT NULL. */
const tableLines = (sql: SqlClient.SqlClient) => sql<Named>`
  SELECT class.relname AS name, format(E'CREATE TABLE %I (\\n  %s\\n)%s%s;', class.relname, array_to_string(ARRAY(
    SELECT concat_ws(' ', quote_ident(attribute.attname), format_type(attribute.atttypid, attribute.atttypmod),
      CASE WHEN collation_of.collname <> 'default' THEN 'COLLATE ' || quote_ident(collation_of.collname) END,
      CASE attribute.attidentity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY' WHEN 'd' THEN 'GENERATED BY DEFAULT AS IDENTITY' END,
      (SELECT format('(INCREMENT BY %s MINVALUE %s)', seqincrement, seqmin) FROM pg_sequence
        WHERE seqrelid = pg_get_serial_sequence(class.oid::regclass::text, attribute.attname)::regclass AND (seqincrement, seqmin) <> (1, 1)),
      CASE attribute.attgenerated WHEN 's' THEN 'GENERATED ALWAYS AS (' || pg_get_expr(value.adbin, value.adrelid) || ') STORED'
        WHEN '' THEN 'DEFAULT ' || pg_get_expr(value.adbin, value.adrelid) END,
      CASE WHEN attribute.attnotnull THEN 'NOT NULL' END)
    FROM pg_attribute attribute
    LEFT JOIN pg_attrdef value ON value.adrelid = attribute.attrelid AND value.adnum = attribute.attnum
    LEFT JOIN pg_collation collation_of ON collation_of.oid = attribute.attcollation
    WHERE attribute.attrelid = class.oid AND attribute.attnum > 0 AND NOT attribute.attisdropped
    ORDER BY attribute.attnum
  ) || ARRAY(
    SELECT format('CONSTRAINT %I %s', constrained.conname, pg_get_constraintdef(constrained.oid))
    FROM pg_constraint constrained WHERE constrained.conrelid = class.oid AND constrained.contype <> 'n'
    ORDER BY constrained.contype = 'p' DESC, constrained.contype = 'f' DESC, constrained.conname COLLATE "C"
  ), E',\\n  '), ' PARTITION BY ' || pg_get_partkeydef(class.oid), ' WITH (' || array_to_string(class.reloptions, ', ') || ')') AS definition
  FROM pg_class class WHERE class.relnamespace = 'public'::regnamespace AND class.relkind IN ('r', 'p')
    AND NOT class.relispartition
  ORDER BY class.relname COLLATE "C"`

/**
 * The statements after a table, view or function: comments, options of columns, indexes except those of constraints, and
 * triggers after the function that they run.
 */
const detailLines = (sql: SqlClient.SqlClient) => sql<{ owner: string; definition: string }>`
  SELECT owner, definition FROM (
    SELECT 1 AS part, relname AS owner, '' AS name, format('COMMENT ON %s %I IS %L;',
      CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, relname, obj_description(oid, 'pg_class')) AS definition
    FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition
      AND obj_description(oid, 'pg_class') IS NOT NULL
    UNION ALL
    SELECT 2, relname, attname, format('ALTER TABLE %I ALTER COLUMN %I SET (%s);', relname, attname, array_to_string(attoptions, ', '))
    FROM pg_attribute JOIN pg_class class ON class.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND attnum > 0 AND attoptions IS NOT NULL
    UNION ALL
    SELECT 3, relname, attname, format('ALTER TABLE %I ALTER COLUMN %I SET STORAGE %s;', relname, attname,
      CASE attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END)
    FROM pg_attribute JOIN pg_class class ON class.oid = attrelid JOIN pg_type kind ON kind.oid = atttypid
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND attnum > 0
      AND attstorage <> typstorage
    UNION ALL
    SELECT 4, class.relname, named.relname, regexp_replace(pg_get_indexdef(entry.indexrelid), ' ON (ONLY )?public.', ' ON ') || ';'
    FROM pg_index entry JOIN pg_class class ON class.oid = entry.indrelid JOIN pg_class named ON named.oid = entry.indexrelid
    WHERE class.relnamespace = 'public'::regnamespace AND NOT class.relispartition
      AND NOT EXISTS (SELECT FROM pg_constraint owner WHERE owner.conindid = entry.indexrelid AND owner.contype IN ('p', 'u', 'x'))
    UNION ALL
    SELECT 5, proname, tgname, replace(pg_get_triggerdef(trigger.oid), ' ON public.', ' ON ') || ';'
    FROM pg_trigger trigger JOIN pg_proc routine ON routine.oid = tgfoid WHERE NOT tgisinternal
  ) AS details
  ORDER BY part, name COLLATE "C"`

// Functions that an extension created are part of the extension.
const functionLines = (sql: SqlClient.SqlClient) => sql<Named>`
  SELECT proname AS name,
    rtrim(replace(pg_get_functiondef(oid), 'CREATE OR REPLACE FUNCTION public.', 'CREATE FUNCTION '), E'\\n') || ';' AS definition
  FROM pg_proc routine
  WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
    AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = routine.oid AND deptype = 'e')
  ORDER BY proname COLLATE "C"`

const viewLines = (sql: SqlClient.SqlClient) => sql<Named>`
  SELECT relname AS name, format(E'CREATE VIEW %I AS\\n%s', relname, pg_get_viewdef(oid)) AS definition
  FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'v' ORDER BY relname COLLATE "C"`
