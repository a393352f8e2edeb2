/**
 * A failover to a standby that lags. The standby is a copy of all rows at the end of a step. When it takes over, the
 * database goes back to these rows, while the nodes keep running with what they remember of the lost commits.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { columns } from "../../../src/platform/postgres/driver/Parameters.ts"

/** The tables of a simulation, each after the tables that it refers to. */
const tables = [
  "event_sequence",
  "journals",
  "webhook_endpoints",
  "products",
  "policies",
  "features",
  "policy_features",
  "product_versions",
  "customers",
  "subscriptions",
  "orders",
  "licenses",
  "license_states",
  "license_features",
  "devices",
  "leases",
  "usage_ledger",
  "usage_event_ids",
  "waiting_entries",
  "event_log",
  "webhook_deliveries",
  "idempotent_answers"
]

const copyFunction = `
  CREATE OR REPLACE FUNCTION simulation_copy(source text, target text, names text[]) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    place int;
    list text;
  BEGIN
    FOR place IN REVERSE cardinality(names) .. 1 LOOP
      EXECUTE format('ALTER TABLE %I.%I DISABLE TRIGGER USER', target, names[place]);
      EXECUTE format('DELETE FROM %I.%I', target, names[place]);
    END LOOP;
    FOR place IN 1 .. cardinality(names) LOOP
      SELECT string_agg(quote_ident(attname), ', ') INTO list FROM pg_attribute
      WHERE attrelid = format('public.%I', names[place])::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
      EXECUTE format('INSERT INTO %I.%I (%s) SELECT %s FROM %I.%I', target, names[place], list, list, source, names[place]);
      EXECUTE format('ALTER TABLE %I.%I ENABLE TRIGGER USER', target, names[place]);
    END LOOP;
  END $$`

/** Creates the standby's tables once per database. */
export const installStandby = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE SCHEMA IF NOT EXISTS standby`
  for (const table of tables)
    yield* sql.unsafe(`CREATE TABLE IF NOT EXISTS standby.${table} AS TABLE public.${table} WITH NO DATA`)
  yield* sql.unsafe(copyFunction)
})

const copy = Effect.fnUntraced(function* (source: string, target: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`SELECT simulation_copy(${source}, ${target}, ${columns.text(tables)})`
})

/** The standby receives everything that is committed. */
export const replicate = copy("public", "standby")

/** The standby becomes the database. */
export const promote = copy("standby", "public")
