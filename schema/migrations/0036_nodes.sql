CREATE TABLE nodes (
  id text PRIMARY KEY,
  epoch text NOT NULL,
  version text NOT NULL,
  address text,
  started_at timestamptz NOT NULL,
  heard_at timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE nodes IS 'A row is a node, with its last sign of life; removed when the node stops, or an hour after its last sign.';
