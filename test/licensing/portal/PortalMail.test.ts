/** What the customer's page does by mail: links that sign in, and new keys. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"
import { poll } from "../../support/rules/Poll.ts"
import { browse, byMail, issue, linksTo, lowered, mailsTo } from "./Visitor.ts"

layer(TestServer.layerWith(byMail))("A link by mail", (it) => {
  it.effect("shows all licenses of its address, once, and tells nothing of addresses", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      const mine = [
        yield* issue({ customer_email: "Anna@Customer.example" }),
        yield* issue({ customer_email: "anna@customer.example" })
      ]
      const other = yield* issue({ customer_email: "ben@customer.example" })
      const { ask } = yield* browse()
      const [known, unknown] = [
        yield* ask("/links", { address: "anna@customer.example", language: "de" }),
        yield* ask("/links", { address: "nobody@customer.example", language: "de" })
      ]
      assert.deepStrictEqual([known.status, known.text], [unknown.status, unknown.text])
      assert.strictEqual(known.status, 204)
      const sent = poll(linksTo("anna@customer.example"), ({ length }) => length > 0)
      const [token] = yield* sent
      assert.lengthOf(yield* linksTo("nobody@customer.example"), 0)
      assert.strictEqual((yield* ask("/sign-in/link", { token: "A".repeat(43) })).json.error.code, "TOKEN_INVALID")
      const signedIn = yield* ask("/sign-in/link", { token })
      assert.strictEqual(signedIn.json.data.kind, "address", signedIn.text)
      assert.strictEqual((yield* ask("/sign-in/link", { token })).json.error.code, "TOKEN_INVALID")
      const listed = yield* ask("/licenses")
      assert.sameMembers(
        listed.json.data.map(({ id }: { id: string }) => id),
        mine.map(({ license }) => license.id)
      )
      assert.strictEqual((yield* ask(`/licenses/${other.license.id}`)).status, 404)
      // Three links of an address at most.
      for (let request = 0; request < 5; request++) yield* ask("/links", { address: "ben@customer.example" })
      const bens = yield* poll(linksTo("ben@customer.example"), ({ length }) => length === 3)
      // The link of another address ends the session of the first one.
      assert.strictEqual((yield* ask("/sign-in/link", { token: bens[1] })).status, 200)
      const bensOnly = yield* ask("/licenses")
      assert.deepStrictEqual(
        bensOnly.json.data.map(({ id }: { id: string }) => id),
        [other.license.id]
      )
      const again = yield* (yield* browse()).ask("/licenses", undefined, { cookie: signedIn.set!.split(";")[0]! })
      assert.strictEqual(again.json.error.code, "TOKEN_INVALID")
      yield* advance(15 * 60)
      assert.strictEqual((yield* ask("/sign-in/link", { token: bens[0] })).json.error.code, "TOKEN_INVALID")
    })
  )
})

layer(TestServer.layerWith(byMail))("An address whose small letters depend on the rules that make them", (it) => {
  it.effect("gets links, and its licenses are erased with its customer", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      // A sigma that ends a word, and an I with a dot: PostgreSQL makes other small letters of them than JavaScript.
      for (const [code, name] of ["ΝΙΚΟΣ", "İREM"].entries()) {
        const email = `${name}@customer.example`
        const customer = yield* client.customers.create({ payload: { name, code: `small-${code}`, email } })
        const [linked, named] = [yield* issue({ customer_id: customer.id }), yield* issue({ customer_email: email })]
        const { ask } = yield* browse()
        yield* ask("/links", { address: email })
        const [token] = yield* poll(linksTo(yield* lowered(email)), ({ length }) => length > 0)
        yield* ask("/sign-in/link", { token })
        const listed = (yield* ask("/licenses")).json.data.map(({ id }: { id: string }) => id)
        assert.sameMembers(listed, [linked.license.id, named.license.id])
        yield* poll(client.customers.erase({ params: { id: customer.id } }), ({ status }) => status === "erased")
        const erased = yield* client.licenses.get({ params: { id: named.license.id } })
        assert.isUndefined(erased.customer_email)
        assert.lengthOf(yield* linksTo(yield* lowered(email)), 0)
        assert.strictEqual((yield* ask("/licenses")).json.error.code, "TOKEN_INVALID")
      }
    })
  )
})

layer(TestServer.layerWith(byMail))("A new key by mail", (it) => {
  it.effect("replaces the key, is in the mail alone, and ends the sessions of the old key", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const address = "cora@customer.example"
      const { license, license_key } = yield* issue({ customer_email: address })
      const other = yield* issue({ customer_email: "dan@customer.example" })
      const [byKey, byLink] = [yield* browse(), yield* browse()]
      yield* byKey.ask("/sign-in/key", { license_key })
      assert.isTrue((yield* byKey.ask(`/licenses/${license.id}`)).json.data.can_mail_key)
      assert.strictEqual((yield* byKey.ask(`/licenses/${other.license.id}/key`, {})).status, 404)
      const replaced = yield* byKey.ask(`/licenses/${license.id}/key`, {})
      assert.deepStrictEqual([replaced.status, replaced.text], [204, ""])
      assert.strictEqual((yield* byKey.ask("/licenses")).json.error.code, "TOKEN_INVALID")
      const [mail, ...more] = yield* mailsTo("rotated_key", address)
      assert.deepStrictEqual(more, [])
      const next = mail!.license_key
      assert.notStrictEqual(next, license_key)
      assert.strictEqual((yield* byKey.ask("/sign-in/key", { license_key })).status, 401)
      assert.strictEqual((yield* byKey.ask("/sign-in/key", { license_key: next })).status, 200)
      const again = yield* byKey.ask(`/licenses/${license.id}/key`, {})
      assert.deepStrictEqual([again.status, again.json.error.code], [429, "RATE_LIMITED"])
      assert.isAbove(Number(again.headers["retry-after"]), 0)
      const { items } = yield* client.events.list({ query: { resource_id: license.id, limit: 3 } })
      assert.deepStrictEqual(
        items.map(({ event_type, actor_type, actor_id }) => [event_type, actor_type, actor_id]),
        [
          ["portal.signed_in", "license", license.id],
          ["license.key_rotated", "license", license.id],
          ["portal.key_requested", "license", license.id]
        ]
      )
      assert.strictEqual(items[2]?.metadata["by"], "key")
      assert.notInclude(JSON.stringify(items), next)

      // A session of the address goes on.
      yield* byLink.ask("/links", { address: "dan@customer.example" })
      const [token] = yield* poll(linksTo("dan@customer.example"), ({ length }) => length > 0)
      yield* byLink.ask("/sign-in/link", { token })
      assert.strictEqual((yield* byLink.ask(`/licenses/${other.license.id}/key`, {})).status, 204)
      assert.strictEqual((yield* byLink.ask("/licenses")).status, 200)
      assert.lengthOf(yield* mailsTo("rotated_key", "dan@customer.example"), 1)
    })
  )

  it.effect("is mailed to an address once in a minute for those who have only keys, whatever the license", () =>
    Effect.gen(function* () {
      const { advance } = yield* TestServer
      const address = "hal@customer.example"
      const [first, second] = [
        yield* issue({ customer_email: address }),
        yield* issue({ customer_email: "Hal@customer.example" })
      ]
      const signedIn = Effect.fnUntraced(function* ({ license_key }: typeof first) {
        const { ask } = yield* browse()
        yield* ask("/sign-in/key", { license_key })
        return ask
      })
      assert.strictEqual((yield* (yield* signedIn(first))(`/licenses/${first.license.id}/key`, {})).status, 204)
      const ask = yield* signedIn(second)
      const refused = yield* ask(`/licenses/${second.license.id}/key`, {})
      assert.deepStrictEqual([refused.status, refused.json.error.detail], [429, "trial-mail"])
      assert.lengthOf(yield* mailsTo("rotated_key", "Hal@customer.example"), 0)
      yield* advance(60)
      assert.strictEqual((yield* ask(`/licenses/${second.license.id}/key`, {})).status, 204)
    })
  )

  it.effect("is not offered without an address or for a revoked license, and refused", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [nameless, other] = [yield* issue(), yield* issue()]
      const revoked = yield* issue({ customer_email: "eve@customer.example" })
      yield* client.licenses.revoke({ params: { id: revoked.license.id } })
      for (const [{ license, license_key }, status] of [
        [nameless, 422],
        [other, 422],
        [revoked, 409]
      ] as const) {
        const { ask } = yield* browse()
        yield* ask("/sign-in/key", { license_key })
        assert.isFalse((yield* ask(`/licenses/${license.id}`)).json.data.can_mail_key)
        assert.strictEqual((yield* ask(`/licenses/${license.id}/key`, {})).status, status)
        assert.strictEqual((yield* ask("/licenses")).status, 200, "the key is still valid")
      }
    })
  )
})

layer(TestServer.layerWith(byMail))("The erasure of a customer", (it) => {
  it.effect("ends the sessions and links of its addresses, and removes its waiting mails", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const [erased, ofLicense, kept] = ["fay@customer.example", "Fay@work.example", "gus@customer.example"] as const
      const customer = yield* client.customers.create({ payload: { name: "Fay", code: "fay", email: erased } })
      const { license } = yield* issue({ customer_id: customer.id })
      yield* issue({ customer_id: customer.id, customer_email: ofLicense })
      const other = yield* issue({ customer_email: kept })
      // A license of another customer that has the same address as a license of the erased one.
      const shared = yield* issue({ customer_email: ofLicense })
      const tokenFor = Effect.fnUntraced(function* (address: string, count: number) {
        const { ask } = yield* browse()
        yield* ask("/links", { address })
        return (yield* poll(linksTo(address.toLowerCase()), ({ length }) => length === count)).at(-1)!
      })
      const begin = Effect.fnUntraced(function* (address: string) {
        const { ask } = yield* browse()
        yield* ask("/sign-in/link", { token: yield* tokenFor(address, 1) })
        return { address, ask, unused: yield* tokenFor(address, 2) }
      })
      const [own, ownByLicense, others] = [yield* begin(erased), yield* begin(ofLicense), yield* begin(kept)]
      assert.strictEqual((yield* own.ask(`/licenses/${license.id}/key`, {})).status, 204)
      assert.strictEqual((yield* ownByLicense.ask(`/licenses/${shared.license.id}/key`, {})).status, 204)

      const erasing = client.customers.erase({ params: { id: customer.id } })
      yield* poll(erasing, ({ status }) => status === "erased")

      for (const { address, ask, unused } of [own, ownByLicense]) {
        assert.strictEqual((yield* ask("/licenses")).json.error.code, "TOKEN_INVALID", address)
        assert.deepStrictEqual(yield* mailsTo("sign_in_link", address.toLowerCase()), [])
        const { ask: askAgain } = yield* browse()
        assert.strictEqual((yield* askAgain("/sign-in/link", { token: unused })).json.error.code, "TOKEN_INVALID")
      }
      assert.deepStrictEqual(yield* mailsTo("rotated_key", erased), [])
      assert.lengthOf(yield* mailsTo("rotated_key", ofLicense), 1)
      const listed = (yield* others.ask("/licenses")).json.data.map(({ id }: { id: string }) => id)
      assert.deepStrictEqual(listed, [other.license.id])
      assert.lengthOf(yield* mailsTo("sign_in_link", kept), 2)
      const { ask } = yield* browse()
      assert.strictEqual((yield* ask("/sign-in/link", { token: others.unused })).status, 200)
    })
  )
})
