-- Custom fields of licenses and customers, the one mark of the first admin token, and indexes for list filters.

-- The first key ever made, whose token an operator may have chosen: only its text may lack the shape of our own tokens.
ALTER TABLE api_keys ADD COLUMN is_bootstrap boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX api_keys_bootstrap ON api_keys (is_bootstrap) WHERE is_bootstrap;

-- List filters of the first tables, each with the list's order.
CREATE INDEX customers_email_page ON customers (email, created_at DESC, id DESC) WHERE email IS NOT NULL;

DROP INDEX subscriptions_customer;
CREATE INDEX subscriptions_customer_page ON subscriptions (customer_id, created_at DESC, id DESC)
  WHERE customer_id IS NOT NULL;
CREATE INDEX subscriptions_status_page ON subscriptions (product_id, status, created_at DESC, id DESC);
CREATE INDEX subscriptions_system_page ON subscriptions (product_id, external_system, created_at DESC, id DESC);
CREATE INDEX subscriptions_external_page ON subscriptions (product_id, external_id, created_at DESC, id DESC);

DROP INDEX orders_customer;
DROP INDEX orders_subscription;
CREATE INDEX orders_customer_page ON orders (customer_id, created_at DESC, id DESC) WHERE customer_id IS NOT NULL;
CREATE INDEX orders_subscription_page ON orders (subscription_id, created_at DESC, id DESC)
  WHERE subscription_id IS NOT NULL;
CREATE INDEX orders_status_page ON orders (product_id, status, created_at DESC, id DESC);
CREATE INDEX orders_system_page ON orders (product_id, external_system, created_at DESC, id DESC);
CREATE INDEX orders_external_page ON orders (product_id, external_id, created_at DESC, id DESC);
