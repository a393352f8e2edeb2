/** Orders and subscriptions of a customer in erasure: a trigger rejects linking, unlinking or metadata changes. */
import { Effect } from "effect"
import * as Failure from "../../contract/api/Failure.ts"
import { isConcurrentChange } from "../../platform/postgres/queries/Sql.ts"

export const refuseErasing = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.catchIf(self, isConcurrentChange, () => Effect.fail(Failure.refuseErasing("customer_id")))
