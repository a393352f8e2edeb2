/** A visitor of the customer's page, over HTTP, and the mails that wait for them. */
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { databaseAt } from "../../../src/platform/Foundation.ts"
import { MasterKey } from "../../../src/platform/signing/MasterKey.ts"
import { Database } from "../../support/database/Database.ts"
import { masterKey, TestServer } from "../../support/http/TestServer.ts"

let products = 0

/** A license of a product of its own. */
export const issue = Effect.fnUntraced(function* (
  license: { readonly customer_email?: string; readonly customer_id?: string } = {}
) {
  const { client } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "Editor", code: `portal-${++products}` } })
  const policy = yield* client.policies.create({
    params: { id: product.id },
    payload: { name: "Team", code: "team", license_type: "perpetual", max_activations: 2, max_floating_users: 2 }
  })
  return yield* client.licenses.create({ payload: { product_id: product.id, policy_id: policy.id, ...license } })
})

/** A browser at an address: it keeps the cookie. */
export const browse = Effect.fnUntraced(function* (address = "203.0.113.1") {
  const { send } = yield* TestServer
  let cookie = ""
  const ask = Effect.fnUntraced(function* (path: string, body?: unknown, headers: Record<string, string> = {}) {
    const answer = yield* send({
      path: `/portal/api${path}`,
      anonymous: true,
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      headers: {
        ...(cookie === "" ? {} : { cookie }),
        "content-type": "application/json",
        "x-forwarded-for": address,
        ...headers
      }
    })
    const set = [answer.headers["set-cookie"] ?? []].flat()[0]
    if (set !== undefined) cookie = set.split(";")[0]!
    return { ...answer, set, json: answer.text === "" ? undefined : JSON.parse(answer.text) }
  })
  return { ask }
})

/** The settings of a service with the page and mail. Nothing is sent: mails stay in the queue. */
export const byMail = {
  portal: true,
  ratePortal: 0,
  baseUrl: "https://licenses.example.com",
  smtpUrl: Redacted.make("smtp://127.0.0.1:1"),
  mailFrom: { address: "licenses@example.com", name: undefined }
}

/** The values of the queued mails to an address, the latest last. */
export const mailsTo = (kind: "sign_in_link" | "rotated_key", address: string) =>
  Effect.gen(function* () {
    const { url } = yield* Database
    const rows = yield* Effect.provide(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql<{ readonly id: string; readonly content_sealed: Uint8Array }>`
          SELECT id, content_sealed FROM mails WHERE kind = ${kind} ORDER BY created_at, id`
      ),
      Layer.fresh(databaseAt(url))
    )
    const key = yield* Effect.provide(MasterKey, MasterKey.layerFromKey(masterKey))
    const mails = yield* Effect.forEach(rows, ({ content_sealed, id }) =>
      Effect.map(key.open(content_sealed, `mails/${id}`), (bytes) => JSON.parse(Buffer.from(bytes).toString()))
    )
    return mails
      .filter(({ to }) => to.address === address)
      .map(({ values }): { readonly link?: string; readonly license_key: string } => values)
  })

/** The tokens of the links that were mailed to an address. */
export const linksTo = (address: string) =>
  Effect.map(mailsTo("sign_in_link", address), (mails) => mails.map(({ link }) => String(link).split("#link=")[1]!))

/** An address in the database's small letters. */
export const lowered = (address: string) =>
  Effect.gen(function* () {
    const { url } = yield* Database
    const [row] = yield* Effect.provide(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql<{ readonly address: string }>`SELECT lower(${address}) AS address`
      ),
      Layer.fresh(databaseAt(url))
    )
    return row!.address
  })
