-- Changes of many licenses at once.
CREATE TABLE bulk_jobs (
  id text PRIMARY KEY,
  action text NOT NULL,
  filter jsonb,
  parameters jsonb NOT NULL,
  dry_run boolean NOT NULL,
  reason text,
  status text NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'canceled', 'failed')),
  matched integer NOT NULL,
  position integer DEFAULT 0 NOT NULL,
  changed integer DEFAULT 0 NOT NULL,
  unchanged integer DEFAULT 0 NOT NULL,
  refused integer DEFAULT 0 NOT NULL,
  failure text,
  product_ids text[],
  actor_type text NOT NULL,
  actor_id text NOT NULL,
  request_id text NOT NULL,
  ip_address text,
  attempts integer DEFAULT 0 NOT NULL,
  leased_until timestamptz,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  ended_at timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE bulk_jobs IS 'A row is a change of many licenses. Position is the number of licenses that it has gone through.';
CREATE INDEX bulk_jobs_created ON bulk_jobs (created_at, id);
CREATE INDEX bulk_jobs_open ON bulk_jobs (id) WHERE status IN ('pending', 'running');

CREATE TABLE bulk_job_parts (
  job_id text NOT NULL REFERENCES bulk_jobs (id) ON DELETE CASCADE,
  start integer NOT NULL,
  license_ids text[] NOT NULL,
  PRIMARY KEY (job_id, start)
);
COMMENT ON TABLE bulk_job_parts IS 'A row is a part of the licenses that matched when the job was created, until the job has gone through them. Start is the position of the first one.';

CREATE TABLE bulk_job_refusals (
  job_id text NOT NULL REFERENCES bulk_jobs (id) ON DELETE CASCADE,
  license_id text NOT NULL,
  code text NOT NULL,
  message text NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (job_id, created_at, license_id)
);
COMMENT ON TABLE bulk_job_refusals IS 'A row is a license that a job could not change, and why.';
