-- How 0026_kept_counts.sql is applied to a database in use.

-- step
ALTER TABLE licenses ADD COLUMN kept_counts jsonb;
