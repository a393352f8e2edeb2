/** The nodes that use the database, for operators. */
import { Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { SqlClient } from "effect/sql"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import { readNodes } from "../../insight/ops/Nodes.ts"
import { OpsNodes } from "../../insight/ops/Ops.ts"
import { asOperator } from "./Operator.ts"
import { aligned, jsonFlag, print } from "./Output.ts"

const encode = Schema.encodeSync(OpsNodes)

const listNodes = Effect.fnUntraced(function* ({ json }: { readonly json: boolean }) {
  const found = yield* readNodes(yield* SqlClient.SqlClient)
  const lines = aligned(
    found.nodes.map(({ address, id, last_heard_at, owned_shards, started_at, status, version }) => [
      id,
      status,
      version,
      `since ${formatTimestamp(started_at)}`,
      `heard ${formatTimestamp(last_heard_at)}`,
      ...(address === undefined ? [] : [`${address}, ${owned_shards} of 256 shards`])
    ])
  )
  yield* print(json, encode(found), lines)
})

export const nodes = Command.make("nodes", jsonFlag, (flags) => asOperator(listNodes(flags))).pipe(
  Command.withDescription("List the nodes that use the database, with their last sign of life."),
  Command.withExamples([
    { command: "licensing nodes", description: "Id, status, version, start, and what each owns of the licenses" }
  ])
)
