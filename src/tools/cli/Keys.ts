/** The commands for signing keys. A rotation writes to the database, where the serving nodes read it. */
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { formatTimestamp } from "../../contract/api/Timestamp.ts"
import { EventLog } from "../../ledger/events/EventLog.ts"
import { transaction } from "../../platform/postgres/queries/Sql.ts"
import { KeyRing } from "../../platform/signing/KeyRing.ts"
import { PublicKey } from "../../platform/signing/PublicKey.ts"
import { print } from "./Output.ts"

const encode = Schema.encodeSync(Schema.Array(PublicKey))

interface Flags {
  readonly json: boolean
}

export const listKeys = Effect.fnUntraced(function* ({ json }: Flags) {
  const keys = yield* (yield* KeyRing).published
  const lines = keys.map(({ created_at, kid, status }) => `${kid} ${status.padEnd(7)} ${formatTimestamp(created_at)}`)
  yield* print(json, encode(keys), lines)
})

export const rotateKey = Effect.fnUntraced(function* ({ json }: Flags) {
  const keyRing = yield* KeyRing
  const events = yield* EventLog
  const rotate = Effect.gen(function* () {
    const before = (yield* keyRing.published).find(({ status }) => status === "active")
    const { kid } = yield* keyRing.rotate
    yield* events.append({
      event_type: "signing_key.rotated",
      resource_type: "signing_key",
      resource_id: kid,
      metadata: { kid, retired_kid: before?.kid ?? null }
    })
    return { kid, retired_kid: before?.kid ?? null }
  })
  const rotated = yield* transaction(yield* SqlClient.SqlClient)(rotate)
  yield* print(json, rotated, [rotated.kid])
}, Effect.provide(EventLog.layer))
