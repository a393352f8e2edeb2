/**
 * The command that rotates the master key. If the key is a setting, the operator first adds the next key to the settings of
 * every node, then runs this command, and then makes the next key the only one. If the key is a file, this command creates the
 * next key's file beside it, where running services find it, and finally replaces the file.
 */
import { Console, Context, Effect, Layer, Redacted, References } from "effect"
import { Settings } from "../../platform/config/Config.ts"
import { masterKeyPath } from "../../platform/Foundation.ts"
import { openSession, Postgres } from "../../platform/postgres/driver/Postgres.ts"
import { idOfKey, MasterKey } from "../../platform/signing/MasterKey.ts"
import { MasterKeyUnusable, nextPath, promote, readOrCreate } from "../../platform/signing/MasterKeyFile.ts"
import { rotateMasterKey } from "../../platform/signing/MasterKeyRotation.ts"
import { print } from "./Output.ts"

/** Fails if the settings have no next key, or have the current one. */
export const checkNextKey = Effect.gen(function* () {
  const { masterKey, masterKeyNext } = yield* Settings
  const current = masterKey === undefined ? undefined : Redacted.value(masterKey)
  if (masterKeyNext === undefined && current !== undefined) {
    return yield* new MasterKeyUnusable({
      message:
        "Set LICENSING_MASTER_KEY_NEXT to a new key, first on every node and then here: `openssl rand -base64 32` creates one."
    })
  }
  if (masterKeyNext !== undefined && Redacted.value(masterKeyNext) === current) {
    return yield* new MasterKeyUnusable({
      message: "LICENSING_MASTER_KEY_NEXT is the current key: set it to a new one."
    })
  }
})

export const rotateMasterKeys = Effect.fnUntraced(function* ({ json }: { readonly json: boolean }) {
  const { dataDir, masterKeyNext } = yield* Settings
  const path = masterKeyPath(dataDir)
  yield* excludeOthers
  const layer =
    masterKeyNext === undefined
      ? Layer.provide(MasterKey.layerFromFile(nextPath(path)), withoutAdvice)
      : MasterKey.layerFromKey(masterKeyNext)
  const to = Context.get(yield* Layer.build(Layer.fresh(layer)), MasterKey)
  const { keyId, moved } = yield* rotateMasterKey(yield* MasterKey, to)
  const counts = moved.map(({ column, table, values }) => ({ column: `${table}.${column}`, values }))
  yield* print(json, { master_key_id: keyId, encrypted: counts }, [
    ...counts.map(({ column, values }) => `${column} ${values}`),
    `master key ${keyId}`
  ])
  if (masterKeyNext !== undefined) return yield* Console.error(lastStep)
  const retired = yield* promote(path, idOfKey(yield* readOrCreate(path, false)))
  yield* Console.error(`The new key is in ${path}: keep a copy of it. Earlier backups need ${retired}.`)
}, Effect.scoped)

/** Two rotations at once would encrypt with different keys. Their lock ends with the session. */
const excludeOthers = Effect.gen(function* () {
  const session = yield* openSession((yield* Postgres).url)
  const [row] = yield* session.values(
    `SELECT pg_try_advisory_lock(hashtextextended('licensing/master_key', 0)), set_config('idle_session_timeout', '0', false)`
  )
  if (row?.[0] === true) return
  return yield* new MasterKeyUnusable({
    message: "Another rotation of the master key is running: wait for its end."
  })
}).pipe(Effect.catchTag("SqlError", Effect.die))

/** The next key's file becomes the key's file, of which the operator keeps a copy. */
const withoutAdvice = Layer.succeed(References.MinimumLogLevel, "Error")

const lastStep =
  "All secrets are encrypted with the new key. Now start each node with LICENSING_MASTER_KEY set to it and without " +
  "LICENSING_MASTER_KEY_NEXT. Keep the old key as long as you keep earlier backups."
