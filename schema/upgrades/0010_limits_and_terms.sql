-- How 0010_limits_and_terms.sql is applied to a database in use. The check of all licenses blocks no writer.

-- step
ALTER TABLE licenses
  ADD COLUMN max_activations integer,
  ADD COLUMN max_container_instances integer,
  ADD COLUMN max_floating_users integer,
  ADD COLUMN max_transfers integer,
  ADD COLUMN offline_grace_days integer,
  -- The days of a term that begins when the license is first used. NULL = no such term is pending.
  ADD COLUMN term_days integer,
  ADD CONSTRAINT licenses_limits_check CHECK (max_activations >= 0 AND max_container_instances >= 0
    AND max_floating_users >= 0 AND max_transfers >= 0 AND offline_grace_days >= 0 AND term_days >= 1) NOT VALID;

-- step
ALTER TABLE licenses VALIDATE CONSTRAINT licenses_limits_check;

-- step
ALTER TABLE policies
  ADD COLUMN allow_transfer boolean NOT NULL DEFAULT true,
  ADD COLUMN duration_days integer,
  ADD COLUMN duration_starts text NOT NULL DEFAULT 'creation',
  ADD CONSTRAINT policies_duration_days_check CHECK (duration_days >= 1),
  ADD CONSTRAINT policies_duration_starts_check CHECK (duration_starts IN ('creation', 'first_activation'));

-- step
CREATE TABLE policy_features (
  policy_id text NOT NULL,
  feature_id text NOT NULL,
  enabled boolean NOT NULL,
  max_consumptions bigint,
  -- From the day on which a license gets the feature.
  expires_after_days integer,
  metadata jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  CONSTRAINT policy_features_pkey PRIMARY KEY (policy_id, feature_id),
  CONSTRAINT policy_features_policy_id_fkey FOREIGN KEY (policy_id) REFERENCES policies(id) ON DELETE CASCADE,
  CONSTRAINT policy_features_feature_id_fkey FOREIGN KEY (feature_id) REFERENCES features(id),
  CONSTRAINT policy_features_max_consumptions_check CHECK (max_consumptions >= 0),
  CONSTRAINT policy_features_expires_after_days_check CHECK (expires_after_days >= 1)
);
COMMENT ON TABLE policy_features IS 'A row is a feature that licenses get with their policy.';
CREATE INDEX policy_features_page ON policy_features (policy_id, created_at DESC, feature_id DESC);
CREATE INDEX policy_features_feature ON policy_features (feature_id);

-- step
-- Whether the assignment came with the license's policy. An assignment made or edited by hand did not.
ALTER TABLE license_features ADD COLUMN from_policy boolean NOT NULL DEFAULT false;
