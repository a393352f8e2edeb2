-- The list of report exports by report and by status, the newest first.
CREATE INDEX report_exports_report ON report_exports (report_kind, created_at, id);
CREATE INDEX report_exports_status ON report_exports (status, created_at, id);
