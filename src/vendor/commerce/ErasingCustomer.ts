/** Orders and subscriptions of a customer that is being erased: a trigger refuses that they are linked, unlinked or described. */
import { Effect } from "effect"
import * as Failure from "../../contract/api/Failure.ts"
import { isConcurrentChange } from "../../platform/postgres/queries/Sql.ts"

export const refuseErasing = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.catchIf(self, isConcurrentChange, () => Effect.fail(Failure.refuseErasing("customer_id")))
