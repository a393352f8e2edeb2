import { Effect } from "effect"
import { Api } from "../../Api.ts"
import { operationGroup } from "../../access/requests/OperationGroup.ts"
import { BulkJobs } from "./BulkJobs.ts"

export const BulkJobsHttp = operationGroup(
  Api,
  "bulkJobs",
  Effect.fn(function* (handlers) {
    const jobs = yield* BulkJobs
    return handlers.handleAll({
      create: ({ payload }) => jobs.create(payload),
      list: ({ query }) => jobs.list(query),
      get: ({ params }) => jobs.get(params.id),
      listRefusals: ({ params, query }) => jobs.refusals(params.id, query),
      cancel: ({ params }) => jobs.cancel(params.id)
    })
  })
)
