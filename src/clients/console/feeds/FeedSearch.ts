/** What the address of the activity screen names. */
import { Schema } from "effect"
import { actions, resultClasses } from "../../../insight/activities/Action.ts"
import { ActivitySource } from "../../../insight/activities/Activity.ts"
import { AuditActorType } from "../../../ledger/events/Event.ts"
import { eventTypes } from "../../../ledger/events/EventType.ts"
import { InputDay, periodOf } from "../reports/UsageSearch.ts"

const text = Schema.optionalKey(Schema.String)

export const FeedSearch = Schema.Struct({
  feed: Schema.optionalKey(Schema.Literals(["activities", "events"])),
  action: Schema.optionalKey(Schema.Literals(actions)),
  result_class: Schema.optionalKey(Schema.Literals(resultClasses)),
  source: Schema.optionalKey(ActivitySource),
  product_id: text,
  license_id: text,
  customer_id: text,
  device_id: text,
  feature_code: text,
  request_id: text,
  from: InputDay,
  to: InputDay,
  event_type: Schema.optionalKey(Schema.Literals(eventTypes)),
  actor_type: Schema.optionalKey(AuditActorType),
  resource_id: text,
  /** Only entries below this number. */
  cursor: Schema.optionalKey(Schema.Int),
  /** The entry that is open. */
  open: Schema.optionalKey(Schema.Int)
})
export type FeedSearch = typeof FeedSearch.Type

/** The filters of the activities as the API takes them. */
export const activityFiltersOf = ({
  actor_type: _actor,
  cursor: _cursor,
  event_type: _type,
  feed: _feed,
  from,
  open: _open,
  resource_id: _resource,
  to,
  ...filters
}: FeedSearch) => ({
  ...filters,
  ...periodOf({ ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) })
})

/** The filters of the events as the API takes them. */
export const eventFiltersOf = ({ actor_type, event_type, resource_id }: FeedSearch) => ({
  ...(event_type === undefined ? {} : { event_type }),
  ...(actor_type === undefined ? {} : { actor_type }),
  ...(resource_id === undefined ? {} : { resource_id })
})
