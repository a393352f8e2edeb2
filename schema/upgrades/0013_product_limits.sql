-- How 0013_product_limits.sql is applied to a database in use: writers continue while the index is built.

-- step
ALTER TABLE api_keys
  ADD COLUMN product_ids text[],
  ADD COLUMN limited_scopes text[],
  ADD CONSTRAINT api_keys_product_ids_check CHECK ((product_ids IS NULL) = (limited_scopes IS NULL) AND (product_ids IS NULL
    OR (cardinality(product_ids) >= 1 AND cardinality(product_ids) <= 100 AND scopes = '{}' AND NOT 'admin' = ANY (limited_scopes) AND NOT is_bootstrap)));

-- step
ALTER TABLE report_exports ADD COLUMN product_ids text[];

-- step
CREATE INDEX CONCURRENTLY licenses_product_customer ON licenses (product_id, customer_id, created_at DESC, id DESC)
  WHERE customer_id IS NOT NULL;
