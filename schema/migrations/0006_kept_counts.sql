-- How many licenses, devices, products and customers there are, kept while they change, so that no dashboard counts rows.
-- A change appends what it adds or takes away and touches no row that another transaction could wait for; whoever reads sums
-- up, and now and then one row takes the place of many.

CREATE TABLE kept_counts (
  -- The table's name; behind a dot the status, where rows have one.
  name text NOT NULL,
  delta bigint NOT NULL
);

CREATE FUNCTION keep_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO kept_counts VALUES (TG_TABLE_NAME, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END);
  RETURN NULL;
END $$;

CREATE FUNCTION keep_status_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN INSERT INTO kept_counts VALUES (TG_TABLE_NAME || '.' || OLD.status, -1); END IF;
  IF TG_OP <> 'DELETE' THEN INSERT INTO kept_counts VALUES (TG_TABLE_NAME || '.' || NEW.status, 1); END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER products_counted AFTER INSERT OR DELETE ON products FOR EACH ROW EXECUTE FUNCTION keep_count();
CREATE TRIGGER customers_counted AFTER INSERT OR DELETE ON customers FOR EACH ROW EXECUTE FUNCTION keep_count();
CREATE TRIGGER licenses_counted AFTER INSERT OR DELETE ON licenses FOR EACH ROW EXECUTE FUNCTION keep_status_count();
CREATE TRIGGER devices_counted AFTER INSERT OR DELETE ON devices FOR EACH ROW EXECUTE FUNCTION keep_status_count();
-- A group commit writes the status of every license in it; only where it changes is there anything to do.
CREATE TRIGGER licenses_recounted AFTER UPDATE OF status ON licenses
  FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION keep_status_count();
CREATE TRIGGER devices_recounted AFTER UPDATE OF status ON devices
  FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION keep_status_count();

INSERT INTO kept_counts SELECT 'products', count(*) FROM products;
INSERT INTO kept_counts SELECT 'customers', count(*) FROM customers;
INSERT INTO kept_counts SELECT 'licenses.' || status, count(*) FROM licenses GROUP BY status;
INSERT INTO kept_counts SELECT 'devices.' || status, count(*) FROM devices GROUP BY status;
