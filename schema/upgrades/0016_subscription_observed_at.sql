-- How 0016_subscription_observed_at.sql is applied to a database in use.

-- step
ALTER TABLE subscriptions ADD COLUMN observed_at timestamptz;
