-- The first admin token, sealed under the master key. It is kept until an API key is used for the first time, so that each start
-- can show it until then.
ALTER TABLE api_keys
  ADD COLUMN token_sealed bytea,
  ADD CONSTRAINT api_keys_token_sealed_check CHECK (token_sealed IS NULL OR is_bootstrap);
