/** The commands for signing keys. A rotation writes to the database, where the serving nodes read it. */
import { Console, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { formatTimestamp } from "../api/Timestamp.ts"
import { EventLog } from "../events/EventLog.ts"
import { transaction } from "../postgres/Sql.ts"
import { KeyRing } from "../signing/KeyRing.ts"

/** Prints `<kid> <status> <created_at>` for each key. */
export const listKeys = Effect.gen(function* () {
  const keys = yield* (yield* KeyRing).published
  yield* Effect.forEach(keys, ({ created_at, kid, status }) =>
    Console.log(`${kid} ${status.padEnd(7)} ${formatTimestamp(created_at)}`)
  )
})

/** Creates a new active key and prints its kid. */
export const rotateKey = Effect.gen(function* () {
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
    return kid
  })
  yield* Console.log(yield* transaction(yield* SqlClient.SqlClient)(rotate))
}).pipe(Effect.provide(EventLog.layer))
