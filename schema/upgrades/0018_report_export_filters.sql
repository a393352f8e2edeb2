-- How 0018_report_export_filters.sql is applied to a database in use: writers continue while the indexes are built.

-- step
CREATE INDEX CONCURRENTLY report_exports_report ON report_exports (report_kind, created_at, id);

-- step
CREATE INDEX CONCURRENTLY report_exports_status ON report_exports (status, created_at, id);
