-- How 0018_pending_search_entries.sql is applied to a database in use: each step locks one index for a moment, for which writers
-- of its table wait.

-- step
ALTER INDEX licenses_search SET (fastupdate = on, gin_pending_list_limit = 256);

-- step
ALTER INDEX customers_search SET (fastupdate = on, gin_pending_list_limit = 256);
