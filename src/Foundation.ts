/** The layers that both the service and the commands need: the database with its schema, the master key, the signing keys. */
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, type Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { Identifiers } from "./api/Identifier.ts"
import { Settings } from "./config/Config.ts"
import { EmbeddedPostgres } from "./postgres/EmbeddedPostgres.ts"
import { Migrations } from "./postgres/Migrations.ts"
import { Postgres } from "./postgres/Postgres.ts"
import { KeyRing } from "./signing/KeyRing.ts"
import { MasterKey } from "./signing/MasterKey.ts"

/** The client of a database, after its schema was migrated to this version. */
export const databaseAt = (url: Redacted.Redacted<string>) =>
  Migrations.layer({ url }).pipe(Layer.provideMerge(Postgres.layer({ url })))

const database = (embedded: typeof EmbeddedPostgres.layer) =>
  Layer.unwrap(
    Settings.useSync(({ databaseUrl, dataDir }) =>
      databaseUrl === undefined
        ? Layer.unwrap(EmbeddedPostgres.useSync(({ url }) => databaseAt(url))).pipe(
            Layer.provide(embedded({ directory: dataDir }))
          )
        : databaseAt(databaseUrl)
    )
  )

/** The file of the master key, if no setting contains the key. */
export const masterKeyPath = (dataDir: string): string => join(dataDir, "master.key")

const masterKey = Layer.unwrap(
  Effect.gen(function* () {
    const { dataDir, masterKey, masterKeyNext } = yield* Settings
    if (masterKey !== undefined) return MasterKey.layerFromKey(masterKey, masterKeyNext)
    const files = yield* FileSystem.FileSystem
    // An existing database was encrypted with another key: a new key would decrypt nothing in it.
    const mayCreate = !(yield* Effect.orDie(files.exists(join(dataDir, "postgres"))))
    return MasterKey.layerFromFile(masterKeyPath(dataDir), { mayCreate, next: masterKeyNext })
  })
)

const randomness = Identifiers.layer.pipe(Layer.provideMerge(SecureRandom.layerWebCrypto))

/** The shared layers over any database and master key. */
export const over = <A, E, R>(stores: Layer.Layer<A, E, R>) =>
  KeyRing.layer.pipe(Layer.provideMerge(stores), Layer.provideMerge(randomness))

// The key comes first: a database is never created without one.
const stores = (embedded: typeof EmbeddedPostgres.layer) => Layer.provideMerge(database(embedded), masterKey)

export const layer = over(stores(EmbeddedPostgres.layer)).pipe(Layer.provide(NodeServices.layer))

/** For commands: uses the embedded database of a running service, or starts it if no service runs. */
export const layerShared = over(stores(EmbeddedPostgres.layerShared)).pipe(Layer.provide(NodeServices.layer))
