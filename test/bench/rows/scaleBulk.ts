/** Bulk jobs with a hundred licenses each, and the refusals of the first one. */
import { created, id, type Statement } from "./scaleValues.ts"

/** A vendor makes a few a day, and they are kept for a quarter. */
const jobsMax = 2_000

export const bulkJobs = (others: number, product: string): ReadonlyArray<Statement> => {
  const jobs = Math.min(others, jobsMax)
  return [
    [
      "bulk_jobs",
      `INSERT INTO bulk_jobs (id, action, filter, parameters, dry_run, status, matched, refused, product_ids, actor_type, actor_id, request_id, created_at, updated_at, ended_at)
     SELECT ${id("bulk", "n")}, CASE WHEN n % 50 = 0 THEN 'revoke' ELSE 'suspend' END, '{}', '{}', false, CASE WHEN n % 70 = 0 THEN 'failed' ELSE 'completed' END, ${others}, ${others},
       CASE WHEN n % 3 = 0 THEN ARRAY['${product}'] END, 'api_key', 'key_1', 'req_bulk_' || n, t, t, t
     FROM generate_series(1, ${jobs}) n, LATERAL (SELECT ${created("n", jobs)} AS t) at`
    ],
    [
      "bulk_job_parts",
      `INSERT INTO bulk_job_parts (job_id, start, license_ids)
     SELECT ${id("bulk", "job")}, 0, array_agg(${id("lic", "n")})
     FROM generate_series(1, ${jobs}) job, generate_series(job, job + 999, 10) n GROUP BY job`
    ],
    [
      "bulk_job_refusals",
      `INSERT INTO bulk_job_refusals (job_id, license_id, code, message, created_at)
     SELECT ${id("bulk", "1")}, ${id("lic", "n")}, 'LICENSE_REVOKED', 'The license is revoked.', ${created("n", others)}
     FROM generate_series(1, ${others}) n`
    ]
  ]
}
