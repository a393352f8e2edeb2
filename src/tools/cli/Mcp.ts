/** The command that lets an assistant manage licenses: a server of the Model Context Protocol. It needs no database. */
import { Config, Console, Effect, Option, Redacted } from "effect"
import { Flag } from "effect/cli"
import { version } from "../../contract/Version.ts"
import { logging } from "./Operator.ts"
import { CommandEnded, flag, untilSignal } from "./Output.ts"

const groupNames = (text: string) => text.split(",").map((name) => name.trim())

export const mcpFlags = {
  url: Flag.String("url").pipe(
    Flag.withDescription("The address of the service; LICENSING_URL unless given."),
    Flag.withFallbackConfig(Config.String("LICENSING_URL")),
    Flag.withDefault("http://127.0.0.1:8080")
  ),
  groups: Flag.String("groups").pipe(
    Flag.withDescription(
      "Only the operations of these groups, for example licenses,customers: fewer tools are easier to choose from."
    ),
    Flag.map(groupNames),
    Flag.optional
  ),
  readOnly: flag("read-only", "Only operations that read."),
  json: flag("json", "Print the offered operations as JSON, and exit.")
}

interface Flags {
  readonly url: string
  readonly groups: Option.Option<ReadonlyArray<string>>
  readonly readOnly: boolean
  readonly json: boolean
}

// Imported on demand, because no other command needs these modules.
const serving = Effect.promise(() => import("../mcp/Serving.ts"))

/** The token comes from the environment, because arguments are visible to other users. */
export const mcp = Effect.fnUntraced(function* ({ groups, json, readOnly, url }: Flags) {
  const token = yield* Config.option(Config.Redacted("LICENSING_TOKEN"))
  if (Option.isNone(token) || Redacted.value(token.value) === "") {
    return yield* new CommandEnded({ exitCode: 2, message: "Set LICENSING_TOKEN to an API token of the service." })
  }
  const { offeredTools, serveMcp } = yield* serving
  const service = { url: url.replace(/\/+$/, ""), token: token.value }
  const tools = yield* offeredTools({ service, groups: Option.getOrUndefined(groups), readOnly })
  if (json)
    return yield* Console.log(
      JSON.stringify(
        tools.map(({ tool }) => tool),
        null,
        2
      )
    )
  return yield* untilSignal(serveMcp(service, tools, version))
}, Effect.provide(logging))
