-- The licenses of a job stay known as long as the job, so that they can be listed.
COMMENT ON TABLE bulk_job_parts IS 'A row is a part of the licenses that matched when the job was created. Start is the position of the first one.';
