/** The activities feed, for reports that need more than the raw audit feed of events. */
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
