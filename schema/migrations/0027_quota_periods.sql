-- Quotas that begin anew with each period, bought credits, overage, and consumptions that are taken back. What is 0 is NULL.
ALTER TABLE license_features
  ADD COLUMN reset_period text
    CONSTRAINT license_features_reset_period_check CHECK (reset_period IN ('day', 'week', 'month', 'year', 'subscription')),
  ADD COLUMN reset_anchor text
    CONSTRAINT license_features_reset_anchor_check CHECK (reset_anchor IN ('license', 'subscription')),
  ADD COLUMN rollover_max bigint,
  ADD COLUMN overage_max bigint,
  ADD COLUMN credits_used bigint,
  ADD COLUMN overage bigint,
  ADD COLUMN rolled_over bigint,
  ADD COLUMN extra_credits bigint,
  ADD COLUMN period_anchor timestamptz,
  ADD COLUMN periods_end_at timestamptz,
  ADD COLUMN period_start timestamptz,
  ADD COLUMN resets_at timestamptz,
  ADD CONSTRAINT license_features_quota_check CHECK (rollover_max >= 0 AND overage_max >= -1 AND credits_used > 0
    AND overage > 0 AND rolled_over > 0 AND extra_credits > 0);
CREATE INDEX license_features_resets ON license_features (resets_at) WHERE resets_at IS NOT NULL;

ALTER TABLE policy_features
  ADD COLUMN reset_period text
    CONSTRAINT policy_features_reset_period_check CHECK (reset_period IN ('day', 'week', 'month', 'year', 'subscription')),
  ADD COLUMN reset_anchor text
    CONSTRAINT policy_features_reset_anchor_check CHECK (reset_anchor IN ('license', 'subscription')),
  ADD COLUMN rollover_max bigint CONSTRAINT policy_features_rollover_max_check CHECK (rollover_max >= 0),
  ADD COLUMN overage_max bigint CONSTRAINT policy_features_overage_max_check CHECK (overage_max >= -1);

ALTER TABLE licenses ADD COLUMN term_began_at timestamptz;

-- The changes of bought credits and of overage, and the event id of the consumption that a row takes back.
ALTER TABLE usage_ledger ADD COLUMN credits bigint, ADD COLUMN overage bigint, ADD COLUMN reverses text;
ALTER TABLE usage_ledger DROP CONSTRAINT usage_ledger_action_check;
ALTER TABLE usage_ledger ADD CONSTRAINT usage_ledger_action_check
  CHECK (action IN ('consume', 'reverse', 'reset', 'period_reset', 'top_up', 'set_limit'));

ALTER TABLE usage_rollup
  ADD COLUMN reversed numeric DEFAULT 0 NOT NULL,
  ADD COLUMN overage numeric DEFAULT 0 NOT NULL,
  ADD COLUMN credits_used numeric DEFAULT 0 NOT NULL;
