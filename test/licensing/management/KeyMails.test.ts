/** License keys by mail: of new licenses, of trials and of rotated keys, once each, and nowhere else. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { layerMailService, Receiver } from "../../support/http/MailServer.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { poll } from "../../support/rules/Poll.ts"

let made = 0

const makeSale = Effect.gen(function* () {
  const { client } = yield* TestServer
  const code = `mailed-${++made}`
  const product = yield* client.products.create({ payload: { name: `Editor ${made}`, code } })
  const policy = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: "Trial", code: "trial", license_type: "trial", duration_days: 14, public_trial: true }
  })
  const address = `buyer-${made}@example.com`
  const customer = yield* client.customers.create({
    payload: { name: "Žofie", code, email: address, metadata: { language: "de" } }
  })
  return { address, customer, ids: { product_id: product.id, policy_id: policy.id }, code, name: product.name }
})

const post = Effect.fnUntraced(function* (path: string, body?: unknown, headers: Record<string, string> = {}) {
  const { send } = yield* TestServer
  return yield* send({ method: "POST", path: `/api/v1${path}`, headers, ...(body === undefined ? {} : { body }) })
})

/** The mails so far to an address, once no mail waits. */
const mailsTo = Effect.fnUntraced(function* (address: string) {
  const sql = yield* SqlClient.SqlClient
  const { accepted } = yield* Receiver
  const waiting = Effect.map(sql`SELECT FROM mails`, ({ length }) => length)
  yield* poll(waiting, (count) => count === 0)
  return accepted.filter(({ to }) => to === address)
})

layer(layerMailService, { excludeTestServices: true, timeout: 60_000 })("A license key", (it) => {
  it.effect("is mailed to the license's address, or else to its customer's, in the customer's language", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { address, customer, ids, name } = yield* makeSale
      const own = `own-${address}`
      const { license_key } = yield* client.licenses.create({
        payload: { ...ids, customer_email: own, customer_name: "Ada", send_key: true }
      })
      const { licenses } = yield* client.licenses.createBatch({
        payload: {
          licenses: [
            { ...ids, customer_id: customer.id, send_key: true },
            { ...ids, customer_id: customer.id }
          ]
        }
      })
      const [first] = yield* mailsTo(own)
      assert.strictEqual(first!.subject, `Your license key for ${name}`)
      assert.include(first!.text, license_key)
      const mails = yield* mailsTo(address)
      assert.lengthOf(mails, 1)
      assert.include(mails[0]!.subject, "Ihr Lizenzschlüssel")
      assert.include(mails[0]!.text, licenses[0]!.license_key)
      assert.include(mails[0]!.text, "Žofie")
    })
  )

  it.effect("that is rotated is mailed with the change", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { address, customer, ids } = yield* makeSale
      const { license } = yield* client.licenses.create({ payload: { ...ids, customer_id: customer.id } })
      const plain = yield* post(`/licenses/${license.id}/rotate-key`)
      assertAnswered(plain, 200)
      const rotated = yield* client.licenses.rotateKey({ params: { id: license.id }, payload: { send_key: true } })
      const mails = yield* mailsTo(address)
      assert.lengthOf(mails, 1)
      assert.include(mails[0]!.text, rotated.license_key)
      assert.include(mails[0]!.subject, "neuer Lizenzschlüssel")
    })
  )

  it.effect("is mailed once when a request is repeated with its Idempotency-Key", () =>
    Effect.gen(function* () {
      const { address, customer, ids } = yield* makeSale
      const body = { ...ids, customer_id: customer.id, send_key: true }
      const headers = { "idempotency-key": address }
      const created = yield* post("/licenses", body, headers)
      assertAnswered(created, 201)
      assert.strictEqual((yield* post("/licenses", body, headers)).text, created.text)
      const { id } = (created.json as { data: { license: { id: string } } }).data.license
      const rotate = post(`/licenses/${id}/rotate-key`, { send_key: true }, headers)
      assert.strictEqual((yield* rotate).text, (yield* rotate).text)
      assert.lengthOf(yield* mailsTo(address), 2)
    })
  )

  it.effect("of a trial is mailed to the address that it names, once a minute", () =>
    Effect.gen(function* () {
      const { address, code } = yield* makeSale
      const trial = (fingerprint: string, more: object) =>
        post("/license/trial", { product_code: code, policy_code: "trial", binding: { fingerprint }, ...more })
      assertRefused(yield* trial("a", { send_key: true }), 422, "VALIDATION_ERROR", "send_key")
      assertAnswered(yield* trial("a", { send_key: true, customer_email: address }), 200)
      assertRefused(yield* trial("b", { send_key: true, customer_email: address.toUpperCase() }), 429, "RATE_LIMITED")
      assertAnswered(yield* trial("b", { customer_email: address }), 200)
      assert.lengthOf(yield* mailsTo(address), 1)
    })
  )

  it.effect("is not all that trials mail: those with reminders name an address once a minute, too", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { address, code, ids } = yield* makeSale
      yield* client.policies.create({
        params: { id: ids.product_id },
        payload: {
          ...{ name: "Reminded", code: "reminded", license_type: "trial", duration_days: 14 },
          ...{ public_trial: true, mail_reminders: true }
        }
      })
      const trial = (fingerprint: string, more: object) =>
        post("/license/trial", { product_code: code, policy_code: "reminded", binding: { fingerprint }, ...more })
      assertAnswered(yield* trial("a", { customer_email: address }), 200)
      assertRefused(yield* trial("b", { customer_email: address }), 429, "RATE_LIMITED", "trial-mail")
      assertAnswered(yield* trial("b", {}), 200)
    })
  )

  it.effect("that waits for the mail server is in no table, event or metric in clear", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { send } = yield* TestServer
      const server = yield* Receiver
      const { address, customer, ids } = yield* makeSale
      server.reply((stage) => (stage === "data" ? 451 : undefined))
      const body = { ...ids, customer_id: customer.id, send_key: true }
      const created = yield* post("/licenses", body, { "idempotency-key": `waits-${address}` })
      const { license_key } = (created.json as { data: { license_key: string } }).data
      const waiting = sql<{ attempts: number }>`SELECT attempts FROM mails`
      yield* poll(waiting, ([mail]) => mail?.attempts === 1)
      const tables = yield* sql<{ name: string }>`
        SELECT format('%I', relname) AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`
      const shown = [(yield* send({ path: "/metrics" })).text, (yield* send({ path: "/api/v1/events" })).text]
      for (const { name } of tables)
        for (const { row } of yield* sql.unsafe<{ row: string }>(`SELECT t::text AS row FROM ${name} t`))
          shown.push(row)
      assert.isAbove(shown.length, 20)
      const [dump, hex] = [shown.join("\n"), Buffer.from(license_key).toString("hex")]
      assert.include(dump, address, "the search finds what is there")
      for (const secret of [license_key, license_key.replaceAll("-", ""), hex]) assert.notInclude(dump, secret)
      yield* sql`DELETE FROM mails`
      server.reply(() => undefined)
    })
  )

  it.effect("cannot be mailed without an address, and then nothing is issued or rotated", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const { ids } = yield* makeSale
      const licenses = [ids, { ...ids, send_key: true }]
      assertRefused(yield* post("/licenses", licenses[1]), 422, "VALIDATION_ERROR", "send_key")
      assertRefused(yield* post("/licenses/batch", { licenses }), 422, "VALIDATION_ERROR", "licenses[1].send_key")
      const injected = { ...ids, send_key: true, customer_email: "a@b\u0001c.example" }
      assertRefused(yield* post("/licenses", injected), 422, "VALIDATION_ERROR", "send_key")
      const { license } = yield* client.licenses.create({ payload: ids })
      const rotation = yield* post(`/licenses/${license.id}/rotate-key`, { send_key: true })
      assertRefused(rotation, 422, "VALIDATION_ERROR", "send_key")
      const kept = yield* client.licenses.list({ query: { product_id: ids.product_id } })
      assert.deepStrictEqual(
        kept.items.map(({ license_key_last4 }) => license_key_last4),
        [license.license_key_last4]
      )
    })
  )

  it.effect("leaves the database with the mails of an erased customer", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const sql = yield* SqlClient.SqlClient
      const receiver = yield* Receiver
      const { address, customer, ids } = yield* makeSale
      receiver.reply((stage) => (stage === "recipient" ? 450 : undefined))
      const own = `private-${address}`
      yield* client.licenses.create({ payload: { ...ids, customer_id: customer.id, send_key: true } })
      yield* client.licenses.create({
        payload: { ...ids, customer_id: customer.id, customer_email: own, send_key: true }
      })
      const waiting = Effect.map(sql`SELECT FROM mails`, ({ length }) => length)
      assert.strictEqual(yield* waiting, 2)
      const erased = yield* post(`/customers/${customer.id}/erase`)
      assertAnswered(erased, 200)
      yield* poll(waiting, (count) => count === 0)
      receiver.reply(() => undefined)
      assert.deepStrictEqual(yield* mailsTo(address), [])
      assert.deepStrictEqual(yield* mailsTo(own), [])
    })
  )
})

layer(TestServer.layer, { excludeTestServices: true })("Without a mail server", (it) => {
  it.effect("a request for a mail is refused, and says what to set", () =>
    Effect.gen(function* () {
      const { ids } = yield* makeSale
      const asked = yield* post("/licenses", { ...ids, customer_email: "a@example.com", send_key: true })
      assertRefused(asked, 422, "VALIDATION_ERROR", "send_key")
      assert.include(asked.text, "LICENSING_SMTP_URL")
    })
  )
})
