/** The tools that are no dependencies of the project, installed by the first test that needs them. */
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { run } from "./BuiltOnce.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))

/** The folder of the programs of `infra/<name>`. */
export const tools = (name: string): Effect.Effect<string> =>
  Effect.as(
    Effect.orDie(run(root, process.execPath, ["infra/scripts/tools.ts", name])),
    join(root, "infra", name, "node_modules/.bin")
  )
