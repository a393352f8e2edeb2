-- How 0017_erasure_fence.sql is applied to a database in use: each step locks one table for a moment. Giving columns the type that
-- they have would check the constraint on them again, so it is taken off and checked in a step of its own.

-- step
ALTER TABLE customers ADD COLUMN erasure_revision bigint DEFAULT 0 NOT NULL;

-- step
ALTER TABLE erasures
  ADD COLUMN attempts integer DEFAULT 0 NOT NULL,
  ADD COLUMN retry_at timestamptz,
  ADD COLUMN changed_partitions text[] DEFAULT '{}' NOT NULL;

-- step
CREATE FUNCTION refuse_erasing_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('licensing.erasing', true) = 'on' THEN
    RETURN NULL;
  END IF;
  PERFORM FROM customers WHERE id IN (NEW.customer_id, CASE WHEN TG_OP = 'UPDATE' THEN OLD.customer_id END)
    ORDER BY id FOR KEY SHARE;
  IF EXISTS (SELECT FROM customers WHERE erasing
      AND id IN (NEW.customer_id, CASE WHEN TG_OP = 'UPDATE' THEN OLD.customer_id END)) THEN
    RAISE EXCEPTION USING ERRCODE = 'LS001', MESSAGE = 'the customer is being erased';
  END IF;
  RETURN NULL;
END $$;

-- step
CREATE TRIGGER orders_erasing_insert AFTER INSERT ON orders FOR EACH ROW
  WHEN (NEW.customer_id IS NOT NULL) EXECUTE FUNCTION refuse_erasing_link();
CREATE TRIGGER orders_erasing_update AFTER UPDATE OF customer_id, metadata ON orders FOR EACH ROW
  WHEN (NEW.customer_id IS DISTINCT FROM OLD.customer_id
    OR (NEW.customer_id IS NOT NULL AND NEW.metadata IS DISTINCT FROM OLD.metadata))
  EXECUTE FUNCTION refuse_erasing_link();

-- step
CREATE TRIGGER subscriptions_erasing_insert AFTER INSERT ON subscriptions FOR EACH ROW
  WHEN (NEW.customer_id IS NOT NULL) EXECUTE FUNCTION refuse_erasing_link();
CREATE TRIGGER subscriptions_erasing_update AFTER UPDATE OF customer_id, metadata ON subscriptions FOR EACH ROW
  WHEN (NEW.customer_id IS DISTINCT FROM OLD.customer_id
    OR (NEW.customer_id IS NOT NULL AND NEW.metadata IS DISTINCT FROM OLD.metadata))
  EXECUTE FUNCTION refuse_erasing_link();

-- step
ALTER TABLE custom_field_values DROP CONSTRAINT IF EXISTS custom_field_values_check1;
ALTER TABLE custom_field_values
  ALTER COLUMN string_value TYPE text, ALTER COLUMN enum_value TYPE text,
  ALTER COLUMN integer_value TYPE bigint, ALTER COLUMN datetime_value TYPE timestamptz;
ALTER TABLE custom_field_values
  ALTER COLUMN string_value SET STATISTICS 0, ALTER COLUMN enum_value SET STATISTICS 0,
  ALTER COLUMN integer_value SET STATISTICS 0, ALTER COLUMN datetime_value SET STATISTICS 0;
ALTER TABLE custom_field_values ADD CONSTRAINT custom_field_values_check1
  CHECK (num_nonnulls(string_value, integer_value, boolean_value, datetime_value, enum_value) = 1) NOT VALID;

-- step
ALTER TABLE custom_field_values VALIDATE CONSTRAINT custom_field_values_check1;

-- step
ALTER TABLE erasures ALTER COLUMN terms TYPE text[];
ALTER TABLE erasures ALTER COLUMN terms SET STATISTICS 0;
ALTER TABLE erasure_records ALTER COLUMN terms TYPE text[];
ALTER TABLE erasure_records ALTER COLUMN terms SET STATISTICS 0;

-- step
ALTER TABLE report_export_chunks ALTER COLUMN bytes SET STATISTICS 0;
