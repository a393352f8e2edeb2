-- How 0027_quota_periods.sql is applied to a database in use: large tables get their constraints unchecked, and they are checked in
-- steps of their own; the index is built while writers continue.

-- step
ALTER TABLE license_features ADD COLUMN reset_period text, ADD COLUMN reset_anchor text, ADD COLUMN rollover_max bigint,
  ADD COLUMN overage_max bigint, ADD COLUMN credits_used bigint, ADD COLUMN overage bigint, ADD COLUMN rolled_over bigint,
  ADD COLUMN extra_credits bigint, ADD COLUMN period_anchor timestamptz, ADD COLUMN periods_end_at timestamptz,
  ADD COLUMN period_start timestamptz, ADD COLUMN resets_at timestamptz;

-- step
ALTER TABLE license_features
  ADD CONSTRAINT license_features_reset_period_check
    CHECK (reset_period IN ('day', 'week', 'month', 'year', 'subscription')) NOT VALID,
  ADD CONSTRAINT license_features_reset_anchor_check CHECK (reset_anchor IN ('license', 'subscription')) NOT VALID,
  ADD CONSTRAINT license_features_quota_check CHECK (rollover_max >= 0 AND overage_max >= -1 AND credits_used > 0
    AND overage > 0 AND rolled_over > 0 AND extra_credits > 0) NOT VALID;

-- step
ALTER TABLE license_features VALIDATE CONSTRAINT license_features_reset_period_check;
ALTER TABLE license_features VALIDATE CONSTRAINT license_features_reset_anchor_check;
ALTER TABLE license_features VALIDATE CONSTRAINT license_features_quota_check;

-- step
CREATE INDEX CONCURRENTLY license_features_resets ON license_features (resets_at) WHERE resets_at IS NOT NULL;

-- step
ALTER TABLE policy_features ADD COLUMN reset_period text, ADD COLUMN reset_anchor text, ADD COLUMN rollover_max bigint,
  ADD COLUMN overage_max bigint;

-- step
ALTER TABLE policy_features
  ADD CONSTRAINT policy_features_reset_period_check
    CHECK (reset_period IN ('day', 'week', 'month', 'year', 'subscription')) NOT VALID,
  ADD CONSTRAINT policy_features_reset_anchor_check CHECK (reset_anchor IN ('license', 'subscription')) NOT VALID,
  ADD CONSTRAINT policy_features_rollover_max_check CHECK (rollover_max >= 0) NOT VALID,
  ADD CONSTRAINT policy_features_overage_max_check CHECK (overage_max >= -1) NOT VALID;

-- step
ALTER TABLE policy_features VALIDATE CONSTRAINT policy_features_reset_period_check;
ALTER TABLE policy_features VALIDATE CONSTRAINT policy_features_reset_anchor_check;
ALTER TABLE policy_features VALIDATE CONSTRAINT policy_features_rollover_max_check;
ALTER TABLE policy_features VALIDATE CONSTRAINT policy_features_overage_max_check;

-- step
ALTER TABLE licenses ADD COLUMN term_began_at timestamptz;

-- step
ALTER TABLE usage_ledger ADD COLUMN credits bigint, ADD COLUMN overage bigint, ADD COLUMN reverses text;

-- step
ALTER TABLE usage_ledger DROP CONSTRAINT usage_ledger_action_check;
ALTER TABLE usage_ledger ADD CONSTRAINT usage_ledger_action_check
  CHECK (action IN ('consume', 'reverse', 'reset', 'period_reset', 'top_up', 'set_limit')) NOT VALID;

-- step
ALTER TABLE usage_ledger VALIDATE CONSTRAINT usage_ledger_action_check;

-- step
ALTER TABLE usage_rollup ADD COLUMN reversed numeric DEFAULT 0 NOT NULL, ADD COLUMN overage numeric DEFAULT 0 NOT NULL,
  ADD COLUMN credits_used numeric DEFAULT 0 NOT NULL;
