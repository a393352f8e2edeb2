-- The constraint that proves the end of a partition has `OR NOT ends_partitions()`: it holds in the session that ends the
-- partition, and refuses no writer. Declared IMMUTABLE, because PostgreSQL uses no other functions in proofs.

CREATE FUNCTION ends_partitions() RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT current_setting('licensing.ends_partitions', true) IS NOT DISTINCT FROM 'on'
$$;
