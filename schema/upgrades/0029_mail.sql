-- How 0029_mail.sql is applied to a database in use.

-- step
ALTER TABLE policies ADD COLUMN mail_reminders boolean NOT NULL DEFAULT false;

-- step
CREATE TABLE mails (
  id text PRIMARY KEY,
  kind text NOT NULL,
  license_id text,
  recipient_hash bytea NOT NULL,
  content_sealed bytea NOT NULL,
  attempts integer DEFAULT 0 NOT NULL,
  due_at timestamptz NOT NULL,
  leased_until timestamptz,
  expires_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL
) WITH (fillfactor = 80);
COMMENT ON TABLE mails IS 'A row is a mail that waits to be sent, at most a day. Its address, names and values are encrypted under the master key.';
CREATE INDEX mails_due ON mails (due_at, id);
CREATE INDEX mails_expiring ON mails (expires_at);

-- step
CREATE TABLE mail_counts (
  period timestamptz PRIMARY KEY,
  sent integer DEFAULT 0 NOT NULL,
  failed integer DEFAULT 0 NOT NULL,
  given_up integer DEFAULT 0 NOT NULL,
  last_success_at timestamptz,
  last_failure_at timestamptz,
  last_failure text
);
COMMENT ON TABLE mail_counts IS 'A row is ten minutes with attempts to send mails.';
