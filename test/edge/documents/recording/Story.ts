/** The run of which the documents show the examples: its chapters in order. A new operation gets a line in one of them. */
import { Effect } from "effect"
import { catalog } from "./Catalog.ts"
import { customers, customFields } from "./Customers.ts"
import { backOffice, devices, giveBack, issuing, runtime } from "./Licenses.ts"
import { keysAndReceivers, lifetimes } from "./Lifetimes.ts"
import { apiKeys, bulkJobs, operations, receivers, refusals, reports, webhooks } from "./Operators.ts"
import { Recorder } from "./Recorder.ts"

export const story = Effect.gen(function* () {
  const receiver = yield* receivers
  const product = yield* catalog
  const sold = { ...receiver, ...product, ...(yield* customers(product)) }
  const issued = { ...sold, ...(yield* issuing(sold)) }
  const used = { ...issued, ...(yield* runtime(issued)) }
  yield* customFields(used)
  yield* devices(used)
  yield* giveBack(used)
  yield* backOffice(used)
  yield* apiKeys
  yield* bulkJobs(used)
  yield* webhooks(used)
  yield* reports(used)
  yield* operations(used)
  yield* refusals(used)
  yield* lifetimes(used)
  yield* keysAndReceivers
  return yield* (yield* Recorder).examples
})
