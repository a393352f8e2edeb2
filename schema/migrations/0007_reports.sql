-- What reports read the usage ledger by: a license's rows in their order, and periods of time over all licenses. Rows are
-- appended as time goes on, so a few entries for each range of pages tell which of them a period lies in.
CREATE INDEX usage_ledger_license ON usage_ledger (license_id, sequence);
CREATE INDEX usage_ledger_time ON usage_ledger USING brin (occurred_at) WITH (pages_per_range = 32, autosummarize = on);
