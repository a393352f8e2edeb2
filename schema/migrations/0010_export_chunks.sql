-- Chunks of exports are written once and soon read or deleted. Compressing them took the server longer than everything else
-- that an export costs it (16 of 25 microseconds a row of the ledger).
ALTER TABLE report_export_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;
