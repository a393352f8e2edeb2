-- What reports read the usage ledger by: a license's rows in their order, and periods of time over all licenses. Rows are
-- appended as time goes on, so a few entries for each range of pages tell which of them a period lies in.
CREATE INDEX usage_ledger_license ON usage_ledger (license_id, sequence);
CREATE INDEX usage_ledger_time ON usage_ledger USING brin (occurred_at) WITH (pages_per_range = 32, autosummarize = on);

-- Exports of reports: what was asked for, how far it is, and the bytes, which never change once they are complete.
CREATE TABLE report_exports (
  id text PRIMARY KEY,
  report_kind text NOT NULL,
  format text NOT NULL CHECK (format IN ('json', 'csv', 'pdf')),
  status text NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
  filters jsonb NOT NULL,
  -- SHA-256 of the canonical JSON of the figures, and of the file; empty until it is complete.
  digest text NOT NULL DEFAULT '',
  artifact_digest text NOT NULL DEFAULT '',
  content_type text NOT NULL,
  size_bytes bigint,
  -- Why it failed, in a sentence for who asked.
  failure text,
  created_by text NOT NULL,
  -- The moment that the figures are of, and for the ledger its last row at that moment.
  generated_at timestamptz NOT NULL,
  ledger_last bigint NOT NULL,
  -- The row of the ledger up to which chunks are written: where whoever goes on begins.
  collected bigint NOT NULL DEFAULT 0,
  rows_done bigint NOT NULL DEFAULT 0,
  chunks_done integer NOT NULL DEFAULT 0,
  attempts smallint NOT NULL DEFAULT 0,
  -- A node is at it until then.
  leased_until timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX report_exports_waiting ON report_exports (created_at, id) WHERE status IN ('pending', 'processing');
CREATE INDEX report_exports_age ON report_exports (created_at);

CREATE TABLE report_export_chunks (
  export_id text NOT NULL REFERENCES report_exports ON DELETE CASCADE,
  -- The figures as canonical JSON, or the file where that is something else.
  part text NOT NULL CHECK (part IN ('snapshot', 'artifact')),
  ordinal integer NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (export_id, part, ordinal)
);
