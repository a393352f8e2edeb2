-- What was consumed of features that a policy took away, by feature id.
ALTER TABLE licenses ADD COLUMN kept_counts jsonb;
