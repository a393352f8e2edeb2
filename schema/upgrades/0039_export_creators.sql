-- step
ALTER TABLE report_exports ADD COLUMN created_by_name text;
