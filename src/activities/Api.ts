/** The activities feed: what reporting reads, where the audit feed of events is too raw. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { PagedBySequence } from "../api/Envelope.ts"
import { failures } from "../api/Failure.ts"
import { Limit, SequenceCursor } from "../api/Paging.ts"
import { Decoding } from "../api/Requests.ts"
import { Idempotency } from "../auth/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../auth/Management.ts"
import { Activity, activityFilter } from "./Activity.ts"

export class ActivitiesApi extends HttpApiGroup.make("activities")
  .add(
    HttpApiEndpoint.get("list", "/activities", {
      query: {
        cursor: Schema.optionalKey(SequenceCursor),
        limit: Schema.optionalKey(Limit),
        ...activityFilter
      },
      success: PagedBySequence(Activity),
      error: failures("INVALID_QUERY")
    }).annotateMerge(
      operation({
        id: "listActivities",
        summary: "List who did what with which result",
        description:
          "Everything that changed and every runtime call that was refused, the newest first. Refusals appear about a second " +
          "after their answer. A page may have fewer rows than limit, even none, before the end: go on until next_cursor is null.",
        scopes: ["report:read"]
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(OpenApi.Title, "ops") {}
