-- Upgrades a database that has the 17 migrations before 0001_initial.sql to the schema of that file. It runs once, in the
-- transaction that records 0001_initial.sql in their place, and removes what is no longer used.

-- Counts that triggers kept while rows changed. A worker counts the rows instead.
DROP TRIGGER IF EXISTS products_counted ON products;
DROP TRIGGER IF EXISTS customers_counted ON customers;
DROP TRIGGER IF EXISTS devices_counted ON devices;
DROP TRIGGER IF EXISTS devices_uncounted ON devices;
DROP TRIGGER IF EXISTS devices_recounted ON devices;
DROP FUNCTION IF EXISTS keep_count();
DROP FUNCTION IF EXISTS keep_status_count();
CREATE OR REPLACE FUNCTION keep_license_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    UPDATE license_states SET status = NEW.status, created_at = NEW.created_at, license_id = NEW.id, policy_id = NEW.policy_id,
      expires_at = NEW.expires_at,
      notice = license_notice(NEW.status, NEW.expires_at, NEW.expiring_for, NEW.expiring_days)
    WHERE status = OLD.status AND created_at = OLD.created_at AND license_id = OLD.id;
  ELSIF TG_OP = 'DELETE' THEN
    DELETE FROM license_states WHERE status = OLD.status AND created_at = OLD.created_at AND license_id = OLD.id;
  ELSE
    INSERT INTO license_states VALUES (NEW.status, NEW.created_at, NEW.id, NEW.policy_id, NEW.expires_at,
      license_notice(NEW.status, NEW.expires_at, NEW.expiring_for, NEW.expiring_days));
  END IF;
  RETURN NULL;
END $$;
DROP TABLE IF EXISTS kept_counts;

-- Nodes of an earlier version wrote all events into the view.
DROP TRIGGER IF EXISTS events_appended ON events;
DROP FUNCTION IF EXISTS append_event();

-- The license search used it before it used search_grams. It stays if it belongs to another user or other objects depend on it.
DO $trigrams$ BEGIN
  DROP EXTENSION IF EXISTS pg_trgm;
EXCEPTION WHEN insufficient_privilege OR dependent_objects_still_exist THEN NULL;
END $trigrams$;

COMMENT ON TABLE products IS 'A row is a product that licenses are sold for.';
COMMENT ON TABLE policies IS 'A row is a set of rules that a product''s licenses follow: type, limits, grace and offline use.';
COMMENT ON TABLE features IS 'A row is a feature of a product that can be assigned to licenses.';
COMMENT ON TABLE product_versions IS 'A row is a released version of a product.';
COMMENT ON TABLE customers IS 'A row is a customer that licenses, orders and subscriptions can name.';
COMMENT ON TABLE subscriptions IS 'A row is a subscription of an external commerce system.';
COMMENT ON TABLE orders IS 'A row is an order of an external commerce system.';
COMMENT ON TABLE licenses IS 'A row is a license, with its counters and its last written state.';
COMMENT ON TABLE license_features IS 'A row assigns a feature to a license, with its limit and what was consumed of it.';
COMMENT ON TABLE license_states IS 'A row is the state of a license, copied from licenses in the same statement, to find licenses by state.';
COMMENT ON TABLE custom_field_definitions IS 'A row defines a custom field of a product''s licenses or customers.';
COMMENT ON TABLE custom_field_values IS 'A row is the value of a custom field of one license or customer, in the column of its type.';
COMMENT ON TABLE devices IS 'A row is a device or container that has used a license.';
COMMENT ON TABLE leases IS 'A row is a floating seat that a device has, or had, checked out.';
COMMENT ON TABLE event_sequence IS 'The only row is the counters of events, ledger rows and refusals; every transaction that appends locks it last, which makes the sequences gapless and commit-ordered.';
COMMENT ON TABLE event_log IS 'A row is an event that is not a row of usage_ledger.';
COMMENT ON TABLE usage_ledger IS 'A row is a change of what a license has consumed of a feature or may consume; a consumption is at the same time its event.';
COMMENT ON VIEW events IS 'A row is an event: all of event_log, and the consumptions of usage_ledger.';
COMMENT ON TABLE usage_rollup IS 'A row is the sums of the usage ledger of one product and feature in one hour or day of UTC.';
COMMENT ON TABLE usage_rollup_progress IS 'The only row is the number of the last ledger row that usage_rollup_days has counted.';
COMMENT ON TABLE usage_rollup_days IS 'A row is a day of UTC with its number of ledger rows; reports read the ledger for a day whose sums lack some of them.';
COMMENT ON TABLE webhook_endpoints IS 'A row is a URL that receives events.';
COMMENT ON TABLE webhook_deliveries IS 'A row is the delivery of one event to one endpoint, written in the transaction of the event.';
COMMENT ON TABLE webhook_delivery_counts IS 'A row is the number of deliveries of one endpoint in ten minutes, by result.';
COMMENT ON TABLE report_exports IS 'A row is a requested export of a report, with its progress and result.';
COMMENT ON TABLE report_export_chunks IS 'A row is a part of the bytes of an export.';
COMMENT ON TABLE refusals IS 'A row is a runtime call that was refused after its license was known; it holds no key, token or binding.';
COMMENT ON TABLE activity_offsets IS 'A row is a batch of refusals between two events: the place of a later event in the feed is its sequence plus refusals_total of the last row before it.';
COMMENT ON TABLE event_spans IS 'A row is a range of events with its first and last time, which finds a period without an index that every event would pay for.';
COMMENT ON TABLE license_validations IS 'A row is the number of validations of one license in one hour.';
COMMENT ON TABLE handovers IS 'A row is the last batch that a buffered writer has committed, so that a batch whose commit was not confirmed is not written twice.';
COMMENT ON TABLE api_keys IS 'A row is a key to the management API; a revoked key keeps its row.';
COMMENT ON TABLE idempotent_answers IS 'A row is the response to a request with an Idempotency-Key, written in the transaction of its change and repeated when the request is.';
COMMENT ON TABLE signing_keys IS 'A row is a key that signs runtime responses, its private half sealed under the master key.';
COMMENT ON TABLE journals IS 'A row is the last group commit of one node''s journal, which tells after a lost connection whether the group was committed.';
COMMENT ON TABLE schema_migrations IS 'A row is a migration that this database has.';

DELETE FROM schema_migrations;
