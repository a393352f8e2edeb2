/** The layers that the service and the commands share: the database with its schema, the master key, the signing keys. */
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, Layer, type Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { Identifiers } from "../contract/api/Identifier.ts"
import { Settings } from "./config/Config.ts"
import { type Options, Postgres } from "./postgres/driver/Postgres.ts"
import { EmbeddedPostgres } from "./postgres/embedded/EmbeddedPostgres.ts"
import { Migrations } from "./postgres/migrations/Migrations.ts"
import { KeyRing } from "./signing/KeyRing.ts"
import { MasterKey } from "./signing/MasterKey.ts"

/** The client of a database, after the migration of its schema to this version. */
export const databaseAt = (url: Redacted.Redacted<string>, waiting: Pick<Options, "unreachable"> = {}) =>
  Migrations.layer({ url }).pipe(Layer.provideMerge(Postgres.layer({ url, ...waiting })))

// The service waits for its database without a limit; a command fails after half a minute.
const database = (embedded: typeof EmbeddedPostgres.layer) =>
  Layer.unwrap(
    Settings.useSync(({ databaseUrl, dataDir }) =>
      databaseUrl === undefined
        ? Layer.unwrap(EmbeddedPostgres.useSync(({ url }) => databaseAt(url))).pipe(
            Layer.provide(embedded({ directory: dataDir }))
          )
        : databaseAt(databaseUrl, embedded === EmbeddedPostgres.layer ? { unreachable: "wait" } : {})
    )
  )

/** The address of a running service's database. If no service runs, starts the embedded server until the scope ends. */
export const databaseUrl = Effect.gen(function* () {
  const { databaseUrl, dataDir } = yield* Settings
  if (databaseUrl !== undefined) return databaseUrl
  return Context.get(yield* Layer.build(EmbeddedPostgres.layerShared({ directory: dataDir })), EmbeddedPostgres).url
})

/** The file of the master key, if no setting contains the key. */
export const masterKeyPath = (dataDir: string): string => join(dataDir, "master.key")

const masterKey = Layer.unwrap(
  Effect.gen(function* () {
    const { dataDir, masterKey, masterKeyNext } = yield* Settings
    if (masterKey !== undefined) return MasterKey.layerFromKey(masterKey, masterKeyNext)
    const sql = yield* SqlClient.SqlClient
    // The secrets of a database with a signing key were encrypted with a master key. A new key could not decrypt them.
    const written = yield* Effect.orDie(sql`SELECT 1 AS found FROM signing_keys LIMIT 1`)
    return MasterKey.layerFromFile(masterKeyPath(dataDir), { mayCreate: written.length === 0, next: masterKeyNext })
  })
)

/** Random ids and secrets. */
export const randomness = Identifiers.layer.pipe(Layer.provideMerge(SecureRandom.layerWebCrypto))

/** The shared layers over any database and master key. */
export const over = <A, E, R>(stores: Layer.Layer<A, E, R>) =>
  KeyRing.layer.pipe(Layer.provideMerge(stores), Layer.provideMerge(randomness))

// The database comes first, so that a start without a usable database creates no key.
const stores = (embedded: typeof EmbeddedPostgres.layer) => Layer.provideMerge(masterKey, database(embedded))

export const layer = over(stores(EmbeddedPostgres.layer)).pipe(Layer.provide(NodeServices.layer))

/** For commands: uses the embedded database of a running service, or starts it if no service runs. */
export const layerShared = over(stores(EmbeddedPostgres.layerShared)).pipe(Layer.provide(NodeServices.layer))

/** The same without the signing keys. They would be created if missing, but an import may bring its own. */
export const layerSharedWithoutKeys = Layer.provideMerge(stores(EmbeddedPostgres.layerShared), randomness).pipe(
  Layer.provide(NodeServices.layer)
)
