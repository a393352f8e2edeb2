/** The activities feed, for reports that need more than the raw audit feed of events. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Idempotency } from "../../access/idempotency/Idempotency.ts"
import { ManagementAuthorization, operation } from "../../access/Management.ts"
import { PagedBySequence } from "../../contract/api/Envelope.ts"
import { failures } from "../../contract/api/Failure.ts"
import { Limit, SequenceCursor } from "../../contract/api/Paging.ts"
import { Decoding } from "../../contract/api/Requests.ts"
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
        summary: "List activities: who did what, with which result",
        description:
          "All changes and all refused runtime calls, newest first. A refusal appears about a second after its response. " +
          "A page before the last may have fewer rows than limit, even none: continue until next_cursor is null.",
        scopes: ["report:read"],
        reach: "rows"
      })
    )
  )
  .middleware(Decoding)
  .middleware(Idempotency)
  .middleware(ManagementAuthorization)
  .annotate(OpenApi.Title, "ops") {}
