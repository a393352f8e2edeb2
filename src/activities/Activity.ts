/**
 * An activity: who did what, with which result. What was done is an event seen from its caller's side; what was refused at runtime
 * has no event and is recorded for this feed alone.
 */
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"
import { type Code, statuses } from "../api/ErrorCode.ts"
import { PositiveCount } from "../api/Int64.ts"
import { isStorable } from "../api/Text.ts"
import { Timestamp } from "../api/Timestamp.ts"
import { AuditActorType } from "../events/Event.ts"
import { actions, resultClasses } from "./Action.ts"

const ActivityAction = Schema.Literals(actions).annotate({
  identifier: "ActivityAction",
  description: "noun.verb: the same word for what was done and what was refused."
})

export const ActivitySource = Schema.Literals(["runtime", "management", "system"]).annotate({
  identifier: "ActivitySource",
  description: "Called with a license key, called with a management token, or done by the service itself."
})
export type ActivitySource = typeof ActivitySource.Type

const ResultClass = Schema.Literals(resultClasses).annotate({ identifier: "ActivityResultClass" })

const id = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))

export const Activity = Schema.Struct({
  sequence: PositiveCount.annotate({ description: "Gapless and in the order of the commits, over all activities." }),
  occurred_at: Timestamp,
  action: ActivityAction,
  source: ActivitySource,
  result_class: ResultClass,
  status_code: Schema.optionalKey(
    Schema.Number.check(Schema.isInt()).annotate({
      format: "int32",
      description: "HTTP status of the call's answer; absent where no call caused it."
    })
  ),
  code: Schema.optionalKey(
    Schema.Literals(Object.keys(statuses) as ReadonlyArray<Code>).annotate({
      description: "The error code of a refusal."
    })
  ),
  actor_type: AuditActorType,
  actor_id: Schema.String,
  request_id: id("Absent where no request caused it."),
  license_id: id("The license that it is about, or was called with."),
  product_id: id("That of the license, or of the record that changed."),
  customer_id: id("The customer, or the one that the license is linked to now."),
  order_id: id("The order, or the one that the license is linked to now."),
  subscription_id: id("The subscription, or the one that the license is linked to now."),
  device_id: id("The device, where the license knows it."),
  feature_code: id("The feature that was used, changed or asked for."),
  event_sequence: Schema.optionalKey(PositiveCount.annotate({ description: "The event that says more of it." })),
  ip_address: id("The client's address.")
}).annotate({ identifier: "Activity" })
export type Activity = typeof Activity.Type

const Named = Schema.String.check(
  Schema.makeFilter((text) => isStorable(text) || "Expected text without NUL characters and lone surrogates")
)

const StatusCode = Schema.String.annotate({
  format: "int32",
  description: "The HTTP status of the answer: 200 to 499."
}).pipe(
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
  from: Schema.optionalKey(Timestamp.annotate({ description: "The first instant that counts." })),
  to: Schema.optionalKey(Timestamp.annotate({ description: "The first instant that does not count any more." })),
  action: Schema.optionalKey(ActivityAction),
  source: Schema.optionalKey(ActivitySource),
  result_class: Schema.optionalKey(ResultClass),
  status_code: Schema.optionalKey(StatusCode),
  request_id: Schema.optionalKey(Named),
  license_id: Schema.optionalKey(Named),
  product_id: Schema.optionalKey(Named),
  customer_id: Schema.optionalKey(Named),
  order_id: Schema.optionalKey(Named),
  subscription_id: Schema.optionalKey(Named),
  device_id: Schema.optionalKey(Named),
  feature_code: Schema.optionalKey(Named)
} as const
export type ActivityFilter = Schema.Struct.Type<typeof activityFilter>
