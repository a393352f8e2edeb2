/**
 * Serves the management operations as tools of the Model Context Protocol over standard input and output. An assistant can do what the
 * token allows, through the public API.
 */
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import { Console, Context, Effect, Layer, Option, Schema, Stdio, Stream } from "effect"
import { McpProtocol, McpSchema, McpServer } from "effect/ai"
import { FetchHttpClient, HttpClient } from "effect/http"
import { type Contract, type ContractOperation, readContract } from "./Contract.ts"
import { changesMany, makeDryRuns } from "./DryRuns.ts"
import { callOperation, getJson, type Service, ServiceUnusable } from "./ToolCalls.ts"
import { hintsOf, inputSchemaOf, isOffered, type Offered } from "./Tools.ts"

interface Options extends Omit<Offered, "scopes" | "isLimited"> {
  readonly service: Service
}

interface OfferedTool {
  readonly operation: ContractOperation
  readonly tool: McpSchema.Tool
}

const instructions = `Management operations of a software-licensing service. Lists return pages: repeat the call with \
\`cursor\` from \`page_info.next_cursor\`. Find ids with the list and search operations; do not guess them. License keys, \
tokens and webhook secrets are shown once, in the answer that creates them: hand them to the person and do not repeat them. \
${changesMany} changes many licenses: it is called with dry_run first, and without it only once the person has seen the counts.`

export const offeredTools = Effect.fnUntraced(function* ({ groups, readOnly, service }: Options) {
  const contract = readContract(yield* getJson(service, "/openapi.json"))
  if (contract === undefined) {
    return yield* new ServiceUnusable({ message: `${service.url}/openapi.json is not the document of this service.` })
  }
  const known = new Set(contract.operations.map(({ group }) => group))
  const unknown = groups?.find((group) => !known.has(group))
  if (unknown !== undefined) {
    const message = `There is no group "${unknown}": the groups are ${[...known].join(", ")}.`
    return yield* new ServiceUnusable({ message })
  }
  const me = (yield* getJson(service, "/api/v1/me")) as unknown as Me
  return contract.operations
    .filter(isOffered({ scopes: me.data.scopes, isLimited: me.data.product_ids !== undefined, groups, readOnly }))
    .map((operation) => ({ operation, tool: toolOf(operation, contract) }))
}, Effect.provide(FetchHttpClient.layer))

interface Me {
  readonly data: { readonly scopes: ReadonlyArray<string>; readonly product_ids?: ReadonlyArray<string> }
}

const toolOf = (operation: ContractOperation, { schemas }: Contract) =>
  new McpSchema.Tool({
    name: operation.id,
    description: operation.description === "" ? operation.summary : `${operation.summary}. ${operation.description}`,
    inputSchema: inputSchemaOf(operation, schemas),
    annotations: hintsOf(operation)
  })

export const serveMcp = (service: Service, tools: ReadonlyArray<OfferedTool>, version: string) => {
  const server = McpServer.layerStdio({
    name: "licensing",
    version,
    instructions,
    protocols: [McpProtocol.v2025_11_25, McpProtocol.v2025_06_18, McpProtocol.v2025_03_26, McpProtocol.v2024_11_05],
    registrations: Layer.effectDiscard(
      Effect.suspend(() => {
        const tryFirst = makeDryRuns()
        return Effect.forEach(tools, (offered) => addTool(service, offered, tryFirst))
      })
    )
  })
  return Layer.launch(server).pipe(Effect.provide([stdio, FetchHttpClient.layer]))
}

const parseError = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32_700, message: "Parse error" } })

/** Responds to lines that are no JSON, at which the server would stop reading (JSON-RPC 2.0, section 5.1). */
const stdio = Layer.effect(
  Stdio.Stdio,
  Stdio.Stdio.useSync((given) => ({
    ...given,
    stdin: given.stdin.pipe(
      Stream.decodeText,
      Stream.splitLines,
      Stream.filterEffect((line) => (isJson(line) ? Effect.succeed(true) : Effect.as(Console.log(parseError), false))),
      Stream.map((line) => new TextEncoder().encode(`${line}\n`))
    )
  }))
).pipe(Layer.provide(NodeStdio.layer))

const isJson = (line: string) => Option.isSome(Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))(line))

const addTool = Effect.fnUntraced(function* (
  service: Service,
  { operation, tool }: OfferedTool,
  tryFirst: ReturnType<typeof makeDryRuns>
) {
  const client = yield* HttpClient.HttpClient
  const server = yield* McpServer.McpServer
  yield* server.addTool({
    tool,
    annotations: Context.empty(),
    handle: (input: Readonly<Record<string, unknown>> = {}) =>
      tryFirst(operation, input, callOperation(service, operation, input)).pipe(
        Effect.map(({ isError, text }) => new McpSchema.CallToolResult({ isError, content: [{ type: "text", text }] })),
        Effect.provideService(HttpClient.HttpClient, client)
      )
  })
})
