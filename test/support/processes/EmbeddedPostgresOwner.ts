// A process that owns the embedded server of the folder in its first argument until it is killed. Prints "ready".
import { Console, Effect, Layer } from "effect"
import { EmbeddedPostgres } from "../../../src/platform/postgres/embedded/EmbeddedPostgres.ts"

const directory = process.argv[2] ?? ""

Effect.runFork(
  Layer.build(EmbeddedPostgres.layer({ directory })).pipe(
    Effect.andThen(Console.log("ready")),
    Effect.andThen(Effect.never),
    Effect.scoped
  )
)
