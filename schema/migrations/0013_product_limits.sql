-- API keys for some products.
ALTER TABLE api_keys
  -- The products that the key is for. NULL = all. A deleted product's id stays, so the list never becomes empty.
  ADD COLUMN product_ids text[],
  -- The scopes of such a key. Its column scopes is empty, so that nodes of the previous version, which do not know the limit,
  -- refuse its token.
  ADD COLUMN limited_scopes text[],
  ADD CONSTRAINT api_keys_product_ids_check CHECK ((product_ids IS NULL) = (limited_scopes IS NULL) AND (product_ids IS NULL
    OR (cardinality(product_ids) >= 1 AND cardinality(product_ids) <= 100 AND scopes = '{}' AND NOT 'admin' = ANY (limited_scopes) AND NOT is_bootstrap)));

-- The products of the token that requested the export. NULL = all.
ALTER TABLE report_exports ADD COLUMN product_ids text[];

-- The customers of a product, and the licenses of a customer for a product.
CREATE INDEX licenses_product_customer ON licenses (product_id, customer_id, created_at DESC, id DESC)
  WHERE customer_id IS NOT NULL;
