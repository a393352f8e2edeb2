/**
 * The program of docs/guides/stripe.md with a running service: events of the shape that Stripe's documentation gives, in random
 * orders and with repetitions, end in the same state.
 */
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Random } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"
import { daySeconds, ended, lifeOf, renewed, secret, shuffled, sign, subscription } from "./StripeEvents.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))

/** A folder with the guide's program, in which `licensing-service/client` is this checkout's. */
const program = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "licensing-stripe-"))
    const home = join(folder, "node_modules/licensing-service")
    mkdirSync(home, { recursive: true })
    for (const name of readdirSync(join(root, "node_modules"))) {
      if (!name.startsWith(".")) symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name))
    }
    writeFileSync(
      join(home, "package.json"),
      JSON.stringify({ type: "module", exports: { "./client": "./client.js" } })
    )
    writeFileSync(join(home, "client.js"), `export * from ${JSON.stringify(`${root}src/clients/client/Client.ts`)}`)
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }))
    const [, code = ""] = /```ts\n(.*?)```/s.exec(readFileSync(join(root, "docs/guides/stripe.md"), "utf8")) ?? []
    writeFileSync(join(folder, "stripe.ts"), code)
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** Collects the mails that the program sends, by email. */
const mailbox = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly keys: Map<string, Array<string>>; readonly close: () => void }>(
    (resume) => {
      const keys = new Map<string, Array<string>>()
      const server = createServer(async (request, response) => {
        const chunks = await Array.fromAsync(request)
        const { email, license_key } = JSON.parse(Buffer.concat(chunks as Array<Buffer>).toString())
        keys.set(email, [...(keys.get(email) ?? []), license_key])
        response.writeHead(204).end()
      }).listen(0, "127.0.0.1", () => {
        const { port } = server.address() as { readonly port: number }
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}/`, keys, close: () => void server.close() }))
      })
    }
  ),
  ({ close }) => Effect.sync(close)
)

class Sales extends Context.Service<
  Sales,
  {
    readonly productId: string
    readonly policies: { readonly pro: string; readonly team: string }
    readonly keys: Map<string, Array<string>>
    /** Sends a body; returns the status. */
    send(body: string, signature: string): Effect.Effect<number>
    /** What the program has logged. */
    logged(): string
  }
>()("licensing/test/Sales") {
  static readonly layer = Layer.effect(
    Sales,
    Effect.gen(function* () {
      const { adminToken, baseUrl, client } = yield* TestServer
      const product = yield* client.products.create({ payload: { name: "Editor", code: "stripe-editor" } })
      const policy = (code: string) =>
        Effect.map(
          client.policies.create({
            params: { id: product.id },
            payload: { name: code, code, license_type: "subscription", grace_period_days: 1 }
          }),
          ({ id }) => id
        )
      const policies = { pro: yield* policy("pro"), team: yield* policy("team") }
      const { keys, url } = yield* mailbox
      const folder = yield* program
      const env = {
        PATH: process.env["PATH"],
        LICENSING_URL: baseUrl,
        LICENSING_TOKEN: adminToken,
        PRODUCT_ID: product.id,
        POLICIES: `price_pro=${policies.pro},price_team=${policies.team}`,
        STRIPE_SECRET: secret,
        MAIL_URL: url,
        PORT: "0"
      }
      const said = { text: "" }
      const child = yield* Effect.acquireRelease(
        Effect.sync(() => spawn(process.execPath, ["stripe.ts"], { cwd: folder, env })),
        (child) =>
          Effect.callback<void>((resume) => {
            if (child.exitCode !== null) return resume(Effect.void)
            child.once("exit", () => resume(Effect.void))
            child.kill("SIGTERM")
          })
      )
      const port = yield* Effect.callback<string>((resume) => {
        const hear = (chunk: unknown) => {
          said.text += chunk
          const [, found] = /istening on \S+?:(\d+)/.exec(said.text) ?? []
          if (found !== undefined) resume(Effect.succeed(found))
        }
        child.stdout.on("data", hear)
        child.stderr.on("data", hear)
        child.once("exit", () => resume(Effect.die(new Error(said.text))))
      })
      const send = (body: string, signature: string) =>
        Effect.promise(async () => {
          const headers = { "content-type": "application/json", "stripe-signature": signature }
          return (await fetch(`http://127.0.0.1:${port}/stripe`, { method: "POST", headers, body })).status
        })
      return Sales.of({ productId: product.id, policies, keys, send, logged: () => said.text })
    })
  )
}

/** What the service has of a customer, without ids and times of its own. */
const stateOf = Effect.fnUntraced(function* (name: string) {
  const { client } = yield* TestServer
  const { productId } = yield* Sales
  const { items: customers } = yield* client.customers.list({ query: { code: `cus_${name.toLowerCase()}` } })
  const { items: subscriptions } = yield* client.commerce.listSubscriptions({
    params: { id: productId },
    query: { external_id: `sub_${name}` }
  })
  const { items: licenses } = yield* client.licenses.list({ query: { subscription_id: subscriptions[0]?.id ?? "" } })
  const [customer] = customers
  return {
    counts: [customers.length, subscriptions.length, licenses.length],
    linked: [subscriptions[0]?.customer_id, licenses[0]?.customer_id].every((id) => id === customer?.id),
    customer: { name: customer?.name, email: customer?.email },
    subscription: subscriptions.map(({ status, current_period_end, observed_at, canceled_at, metadata }) => ({
      ...{ status, current_period_end, observed_at, canceled_at, metadata }
    }))[0],
    license: licenses.map(({ status, expires_at, policy_id }) => ({ status, expires_at, policy_id }))[0],
    delivered: licenses[0]?.metadata["delivered"]
  }
})

layer(Sales.layer.pipe(Layer.provideMerge(TestServer.layer)), { excludeTestServices: true, timeout: 180_000 })(
  "The Stripe guide's program",
  (it) => {
    const play = Effect.fnUntraced(function* (events: ReadonlyArray<object>) {
      const { logged, send } = yield* Sales
      for (const event of events) {
        const body = JSON.stringify(event)
        assert.strictEqual(yield* send(body, sign(body)), 204, logged())
      }
    })

    it.effect("ends in the same state in every order of events, and sends one key", () =>
      Effect.gen(function* () {
        const { keys, policies } = yield* Sales
        for (let seed = 0; seed < 6; seed++) {
          const name = `Renewed${seed}`
          const { end, events } = renewed(name)
          const order = seed === 0 ? events : yield* shuffled(events).pipe(Random.withSeed(seed))
          yield* play(order)
          const state = yield* stateOf(name)
          assert.deepStrictEqual(
            state,
            {
              counts: [1, 1, 1],
              linked: true,
              customer: { name: `Buyer ${name}`, email: `${name}@example.com` },
              subscription: {
                status: "active",
                current_period_end: end * 1_000,
                observed_at: (events[0]!.created + 50) * 1_000 + 3,
                canceled_at: undefined,
                metadata: { price: "price_team", stripe_status: "active" }
              },
              license: { status: "active", expires_at: end * 1_000, policy_id: policies.team },
              delivered: true
            } as never,
            `seed ${seed}: ${order.map(({ id }) => id).join(" ")}`
          )
          assert.lengthOf(keys.get(`${name}@example.com`) ?? [], 1)
          const { send } = yield* TestServer
          const [key = ""] = keys.get(`${name}@example.com`) ?? []
          const answer = yield* send({
            method: "POST",
            path: "/api/v1/license/activate",
            headers: { authorization: `License ${key}` },
            body: { fingerprint: name }
          })
          assert.strictEqual(answer.status, 200)
        }
      })
    )

    for (const last of ["past_due", "canceled"] as const) {
      it.effect(`keeps a customer suspended whose last event is ${last}, whatever is repeated`, () =>
        Effect.gen(function* () {
          for (let seed = 0; seed < 4; seed++) {
            const name = `${last.replace("_", "")}${seed}`
            const { end, events } = ended(name, last)
            const order = yield* shuffled(events).pipe(Random.withSeed(seed))
            yield* play(seed === 0 ? [...events, ...events] : order)
            const { counts, license, subscription } = yield* stateOf(name)
            assert.deepStrictEqual([counts, subscription?.status], [[1, 1, 1], last], `seed ${seed}`)
            assert.deepStrictEqual([license?.status, license?.expires_at], ["suspended", end * 1_000])
          }
        })
      )
    }

    it.effect("refuses forged and old requests, and ignores what it does not sell", () =>
      Effect.gen(function* () {
        const { send } = yield* Sales
        const { client } = yield* TestServer
        const [event] = renewed("Forged").events
        const body = JSON.stringify(event)
        const now = Math.floor(Date.now() / 1_000)
        for (const signature of [
          "",
          "t=1",
          `t=${now},v1=00`,
          sign(body, now, "whsec_other"),
          sign(body, now - 301),
          sign(`${body} `),
          sign(body).replace("v1=", "v0="),
          sign(body).replace(/t=\d+/, `t=${now + 7}`)
        ]) {
          assert.strictEqual(yield* send(body, signature), 400, signature)
        }
        assert.deepStrictEqual((yield* client.customers.list({ query: { code: "cus_forged" } })).items, [])
        const life = { start: now, end: now + daySeconds, status: "active", price: "price_other" }
        yield* play(
          lifeOf("Other", now, [
            subscription("created", "Other", 0, life),
            { type: "invoice.paid", after: 1, object: { id: "in_1", object: "invoice" } }
          ])
        )
        assert.deepStrictEqual((yield* client.customers.list({ query: { code: "cus_other" } })).items, [])
        // Both secrets sign while Stripe rotates them.
        const other = JSON.stringify({ ...event, type: "invoice.paid" })
        assert.strictEqual(
          yield* send(other, `${sign(other, now, "whsec_old")},${sign(other, now).split(",")[1]}`),
          204
        )
      })
    )
  }
)
