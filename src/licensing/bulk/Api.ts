/** The operations on bulk jobs. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { Data, Paged } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { listQuery, pageQuery } from "../../contract/api/Paging.ts"
import { Decoding, PathTables } from "../../contract/api/Requests.ts"
import { BulkJob, BulkJobCreate, BulkRefusal, bulkJobFilters, bulkJobSorts } from "./BulkJob.ts"

const params = { id: Schema.String }

export class BulkJobsApi extends HttpApiGroup.make("bulkJobs")
  .add(
    HttpApiEndpoint.post("create", "/bulk-jobs", {
      payload: BulkJobCreate,
      success: Data(BulkJob).pipe(HttpApiSchema.status(202)),
      error: failures("NOT_FOUND", "VALIDATION_ERROR")
    }).annotateMerge(
      operation({
        id: "createBulkJob",
        summary: "Change many licenses",
        description:
          "Changes the licenses that match now, each exactly once and with an event of its own, whose metadata has the bulk_job_id. At most 1,000,000 licenses. A license that cannot be changed is a refusal of the job. A token for some products reaches its own licenses only.",
        scopes: ["license:write"],
        reach: "rows"
      })
    ),
    HttpApiEndpoint.get("list", "/bulk-jobs", {
      query: listQuery(bulkJobSorts, bulkJobFilters),
      success: Paged(BulkJob)
    }).annotateMerge(
      operation({
        id: "listBulkJobs",
        summary: "List bulk jobs",
        description: "Those that have ended are kept for 90 days.",
        scopes: ["license:read"],
        reach: "rows"
      })
    ),
    HttpApiEndpoint.get("get", "/bulk-jobs/:id", {
      params,
      success: Data(BulkJob),
      error: failures("NOT_FOUND")
    }).annotateMerge(operation({ id: "getBulkJob", summary: "Get a bulk job", scopes: ["license:read"] })),
    HttpApiEndpoint.get("listRefusals", "/bulk-jobs/:id/refusals", {
      params,
      query: pageQuery,
      success: Paged(BulkRefusal),
      error: failures("NOT_FOUND")
    }).annotateMerge(
      operation({
        id: "listBulkJobRefusals",
        summary: "List the licenses that a bulk job could not change",
        scopes: ["license:read"]
      })
    ),
    HttpApiEndpoint.post("cancel", "/bulk-jobs/:id/cancel", {
      params,
      success: Data(BulkJob),
      error: failures("NOT_FOUND", "BULK_JOB_STATE_CONFLICT")
    }).annotateMerge(
      operation({
        id: "cancelBulkJob",
        summary: "Cancel a bulk job",
        description: "What it has changed stays changed.",
        scopes: ["license:write"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(PathTables, { id: "bulk_jobs" })
  .annotate(OpenApi.Description, "Changes of many licenses at once.") {}
