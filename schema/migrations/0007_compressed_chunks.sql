-- The bytes of exports are compressed by the service from here on. Chunks that are stored already stay as they are.
ALTER TABLE report_export_chunks
  -- The size before compression with Zstandard. NULL: `bytes` is not compressed.
  ADD COLUMN plain_size integer,
  ADD CONSTRAINT report_export_chunks_plain_size_check CHECK (plain_size > 0);
