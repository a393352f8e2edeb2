-- How 0012_keys.sql is applied to a database in use. The check of all policies blocks no writer.

-- step
CREATE TABLE vendor_key_use (
  "only" boolean DEFAULT true NOT NULL,
  -- Whether every node has had the time to learn of the row: before that no license gets such a key.
  known boolean NOT NULL,
  CONSTRAINT vendor_key_use_pkey PRIMARY KEY ("only"),
  CONSTRAINT vendor_key_use_only_check CHECK ("only")
);
COMMENT ON TABLE vendor_key_use IS 'Its only row, if there is one, says that licenses may have keys that the vendor chose.';

-- step
-- Policies whose trials begin without a license key.
ALTER TABLE policies
  ADD COLUMN public_trial boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT policies_public_trial_check CHECK (NOT public_trial OR license_type = 'trial') NOT VALID;

-- step
ALTER TABLE policies VALIDATE CONSTRAINT policies_public_trial_check;

-- step
CREATE TABLE public_trials (
  product_id text NOT NULL,
  binding_kind text NOT NULL,
  -- SHA-256 of the binding key.
  binding_hash bytea NOT NULL,
  license_id text NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT public_trials_pkey PRIMARY KEY (product_id, binding_kind, binding_hash),
  CONSTRAINT public_trials_product_id_fkey FOREIGN KEY (product_id) REFERENCES products(id) ON DELETE CASCADE
);
COMMENT ON TABLE public_trials IS 'A row is a device that has used its trial of a product. It stays when the trial''s license is gone.';
