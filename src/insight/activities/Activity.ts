/**
 * An activity: an actor, an action and its result. An action that succeeded is an event. A refused call of the runtime API has
 * no event and is recorded for the activities feed only.
 */
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"
import { type Code, statuses } from "../../contract/api/ErrorCode.ts"
import { PositiveCount } from "../../contract/api/Int64.ts"
import { isStorable, publishedAs } from "../../contract/api/Text.ts"
import { Instant, Timestamp } from "../../contract/api/Timestamp.ts"
import { ActorName, AuditActorType } from "../../ledger/events/Event.ts"
import { actions, resultClasses } from "./Action.ts"

const ActivityAction = Schema.Literals(actions).annotate({
  identifier: "ActivityAction",
  description: "noun.verb: a succeeded and a refused action have the same name."
})

export const ActivitySource = Schema.Literals(["runtime", "management", "system"]).annotate({
  identifier: "ActivitySource",
  description: "A call with a license key, a call with a management token, or the service itself."
})
export type ActivitySource = typeof ActivitySource.Type

const ResultClass = Schema.Literals(resultClasses).annotate({
  identifier: "ActivityResultClass",
  description: "The result of the action."
})

const id = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))

export const Activity = Schema.Struct({
  sequence: PositiveCount.annotate({ description: "Gapless and in commit order, over all activities." }),
  occurred_at: Timestamp,
  action: ActivityAction,
  source: ActivitySource,
  result_class: ResultClass,
  status_code: Schema.optionalKey(
    Schema.Number.check(Schema.isInt()).annotate({
      format: "int32",
      description: "HTTP status of the response to the call; absent without a call."
    })
  ),
  code: Schema.optionalKey(
    Schema.Literals(Object.keys(statuses) as ReadonlyArray<Code>).annotate({
      description: "The error code of a refusal."
    })
  ),
  actor_type: AuditActorType,
  actor_id: Schema.String,
  request_id: id("Absent without a request."),
  license_id: id("The license of the activity, or the one whose key the call used."),
  product_id: id("The product of the license or of the changed record."),
  customer_id: id("The customer, or the one that the license links to now."),
  order_id: id("The order, or the one that the license links to now."),
  subscription_id: id("The subscription, or the one that the license links to now."),
  device_id: id("The device, if the license has it."),
  feature_code: id("The feature that was used, changed or requested."),
  event_sequence: Schema.optionalKey(PositiveCount.annotate({ description: "The event with the details." })),
  ip_address: id("The client's address."),
  actor_name: ActorName
}).annotate({ identifier: "Activity" })
export type Activity = typeof Activity.Type

const FilterText = Schema.String.check(
  Schema.makeFilter((text) => isStorable(text) || "Expected text without NUL characters and lone surrogates")
)

const StatusCode = Schema.String.annotate({
  format: "int32",
  description: "The HTTP status of the response: 200 to 499."
})
  .check(publishedAs({ minimum: 200, maximum: 499 }))
  .pipe(
    Schema.decodeTo(Schema.Number, {
      decode: SchemaGetter.transformEffect((text: string) =>
        /^[2-4]\d\d$/.test(text)
          ? Effect.succeed(Number(text))
          : Effect.fail(new SchemaIssue.InvalidValue({ message: "Expected a status from 200 to 499" }))
      ),
      encode: SchemaGetter.transform(String)
    })
  )

export const activityFilter = {
  from: Schema.optionalKey(Instant("The start of the period, inclusive.")),
  to: Schema.optionalKey(Instant("The end of the period, exclusive.")),
  action: Schema.optionalKey(ActivityAction),
  source: Schema.optionalKey(ActivitySource),
  result_class: Schema.optionalKey(ResultClass),
  status_code: Schema.optionalKey(StatusCode),
  request_id: Schema.optionalKey(FilterText),
  license_id: Schema.optionalKey(FilterText),
  product_id: Schema.optionalKey(FilterText),
  customer_id: Schema.optionalKey(FilterText),
  order_id: Schema.optionalKey(FilterText),
  subscription_id: Schema.optionalKey(FilterText),
  device_id: Schema.optionalKey(FilterText),
  feature_code: Schema.optionalKey(FilterText)
} as const
export type ActivityFilter = Schema.Struct.Type<typeof activityFilter>
