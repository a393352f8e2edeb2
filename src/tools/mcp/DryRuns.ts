/** A change of many licenses is called as a dry run first, so that a person can see what it would do. */
import { Effect, Predicate } from "effect"
import { canonicalize } from "../../contract/api/CanonicalJson.ts"
import type { ContractOperation } from "./Contract.ts"
import type { Answer } from "./ToolCalls.ts"

export const changesMany = "createBulkJob"

export const makeDryRuns = () => {
  let tried: string | undefined
  return <E, R>(
    { id }: ContractOperation,
    { body }: { readonly body?: unknown },
    call: Effect.Effect<Answer, E, R>
  ) => {
    if (id !== changesMany || !Predicate.isObject(body)) return call
    const { dry_run, ...request } = body as { readonly dry_run?: unknown }
    const requested = canonicalize(request as never)
    if (dry_run !== true && tried !== requested) return Effect.succeed(untried)
    // A dry run admits one job: a second one would change the licenses again, which nobody has seen.
    return Effect.tap(call, ({ isError }) =>
      Effect.sync(() => {
        if (!isError) tried = dry_run === true ? requested : undefined
      })
    )
  }
}

const untried: Answer = {
  isError: true,
  text: `${changesMany} changes many licenses: call it with the same body and dry_run: true first, read the counts of that job with getBulkJob, and let the person confirm them.`
}
