-- Sessions of the customer's page, and the links by mail that begin them.
CREATE TABLE portal_sessions (
  id text PRIMARY KEY,
  token_hash bytea NOT NULL UNIQUE,
  license_id text,
  key_hash bytea,
  address text,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  CHECK ((license_id IS NULL) = (key_hash IS NULL) AND (license_id IS NULL) <> (address IS NULL))
);
COMMENT ON TABLE portal_sessions IS 'A row is a session of the customer''s page: of a license, by its key, or of the licenses of an e-mail address.';
CREATE INDEX portal_sessions_ended ON portal_sessions (expires_at);
CREATE INDEX portal_sessions_address ON portal_sessions (address) WHERE address IS NOT NULL;

CREATE TABLE portal_links (
  token_hash bytea PRIMARY KEY,
  address text NOT NULL,
  expires_at timestamptz NOT NULL
);
COMMENT ON TABLE portal_links IS 'A row is a link that was sent to an e-mail address and not used yet.';
CREATE INDEX portal_links_ended ON portal_links (expires_at);
CREATE INDEX portal_links_address ON portal_links (address, expires_at);
