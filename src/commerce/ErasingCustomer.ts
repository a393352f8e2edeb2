/** Orders and subscriptions of a customer that is being erased: a trigger refuses that they are linked, unlinked or described. */
import { Effect } from "effect"
import { refuse } from "../api/Failure.ts"
import { isConcurrentChange } from "../postgres/Sql.ts"

const isErasing = refuse(
  "CONFLICT",
  "The customer is being erased: send the request again when that is done.",
  "customer_id"
)

export const refuseErasing = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.catchIf(self, isConcurrentChange, () => Effect.fail(isErasing))
