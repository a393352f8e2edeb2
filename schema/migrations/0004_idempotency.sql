-- The first answers of requests that carried an Idempotency-Key, replayed when the request is repeated. A row is written in
-- the transaction of the change that it answers for.
CREATE TABLE idempotent_answers (
  -- SHA-256 over credential, method, path and key; for renewals over the license and the key alone.
  scope bytea PRIMARY KEY,
  -- SHA-256 over the request's body: the same key with another body is refused.
  body_hash bytea NOT NULL,
  status smallint NOT NULL,
  content_type text,
  -- Sealed under the master key, for an answer may show a secret; a renewal's shows none and stands as it was sent.
  body bytea NOT NULL,
  sealed boolean NOT NULL,
  -- NULL: kept for ever (renewals).
  expires_at timestamptz,
  created_at timestamptz NOT NULL
);
CREATE INDEX idempotent_answers_expiry ON idempotent_answers (expires_at) WHERE expires_at IS NOT NULL;
