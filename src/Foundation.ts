/** What everything stands on: the database with its tables, the master key and the signing keys. Nothing here listens. */
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Layer, type Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { Identifiers } from "./api/Identifier.ts"
import { Settings } from "./Config.ts"
import { EmbeddedPostgres } from "./postgres/EmbeddedPostgres.ts"
import { Migrations } from "./postgres/Migrations.ts"
import { Postgres } from "./postgres/Postgres.ts"
import { KeyRing } from "./signing/KeyRing.ts"
import { MasterKey } from "./signing/MasterKey.ts"

/** The client of a database, which is brought to this version's schema first. */
export const databaseAt = (url: Redacted.Redacted<string>) =>
  Migrations.layer({ url }).pipe(Layer.provideMerge(Postgres.layer({ url })))

const database = Layer.unwrap(
  Settings.useSync(({ databaseUrl, dataDir }) =>
    databaseUrl === undefined
      ? Layer.unwrap(EmbeddedPostgres.useSync(({ url }) => databaseAt(url))).pipe(
          Layer.provide(EmbeddedPostgres.layer({ directory: dataDir }))
        )
      : databaseAt(databaseUrl)
  )
)

const masterKey = Layer.unwrap(
  Settings.useSync(({ masterKey, dataDir }) =>
    masterKey === undefined ? MasterKey.layerFromFile(join(dataDir, "master.key")) : MasterKey.layerFromKey(masterKey)
  )
)

const randomness = Identifiers.layer.pipe(Layer.provideMerge(SecureRandom.layerWebCrypto))

/** The same over any database and master key. */
export const over = <A, E, R>(stores: Layer.Layer<A, E, R>) =>
  KeyRing.layer.pipe(Layer.provideMerge(stores), Layer.provideMerge(randomness))

export const layer = over(Layer.merge(database, masterKey)).pipe(Layer.provide(NodeServices.layer))
