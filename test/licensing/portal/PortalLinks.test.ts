/** Links by mail that several nodes send at the same time. */
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Mail } from "../../../src/ledger/mail/Mail.ts"
import type { NewMail } from "../../../src/ledger/mail/QueuedMail.ts"
import { PortalLicenses } from "../../../src/licensing/portal/PortalLicenses.ts"
import { PortalLinks } from "../../../src/licensing/portal/PortalLinks.ts"
import { Settings } from "../../../src/platform/config/Config.ts"
import { Foundations } from "../../support/database/Services.ts"
import { poll } from "../../support/rules/Poll.ts"

/** Licenses belong to every address. */
const licenses = Layer.mock(PortalLicenses, {
  list: () => Effect.succeed({ items: [{} as never], nextCursor: undefined })
})

/** How a node requests a link, in whose transaction `queue` runs. */
const makeNode = Effect.fnUntraced(function* (queue: (mail: NewMail) => Effect.Effect<void>) {
  const mail = Layer.mock(Mail, { isOn: true, queue: (...mails) => Effect.forEach(mails, queue, { discard: true }) })
  const settings = Settings.layerTest({ baseUrl: "https://licenses.example.com" })
  const node = yield* Layer.build(Layer.fresh(PortalLinks.layer.pipe(Layer.provide([mail, licenses, settings]))))
  const { request } = Context.get(node, PortalLinks)
  return (address: string) => request({ address })
})

const linksTo = (address: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    return (yield* sql`SELECT token_hash FROM portal_links WHERE address = ${address}`).length
  })

const waitingForLocks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const waiting = yield* sql`
    SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()`
  return waiting.length
})

layer(Foundations, { excludeTestServices: true })("Links to one address", (it) => {
  it.effect("are at most three, also from two nodes at once", () =>
    Effect.gen(function* () {
      const [anna, ben] = ["anna@customer.example", "ben@customer.example"] as const
      const [writes, mayCommit] = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()]
      const slow = yield* makeNode(() => Effect.andThen(Deferred.succeed(writes, undefined), Deferred.await(mayCommit)))
      const sent: Array<string> = []
      const fast = yield* makeNode(({ to }) => Effect.sync(() => void sent.push(to.address)))
      yield* fast(anna)
      yield* fast(anna)
      yield* poll(linksTo(anna), (links) => links === 2)
      yield* slow(anna)
      yield* Deferred.await(writes)
      yield* fast(anna)
      // It waits, or has sent a link too many.
      yield* poll(waitingForLocks, (waiting) => waiting > 0 || sent.length > 2)
      yield* Deferred.succeed(mayCommit, undefined)
      // A node writes its links in order.
      yield* fast(ben)
      yield* poll(linksTo(ben), (links) => links === 1)
      assert.deepStrictEqual(sent, [anna, anna, ben])
      assert.strictEqual(yield* linksTo(anna), 3)
    })
  )
})
