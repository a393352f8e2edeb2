/** The program of docs/guides/stripe.md as a process, with a running service, a small Stripe and a mailbox. */
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Context, Effect, Layer } from "effect"
import { TestServer } from "../../support/http/TestServer.ts"
import { bodyOf, StripeFake, secret, stripeKey } from "./StripeFake.ts"
import { type Prices, teamQuota } from "./StripeStorms.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))

/** A folder with the guide's program, in which `@licensing-service/client` is this checkout's. */
const program = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "licensing-stripe-"))
    const home = join(folder, "node_modules/@licensing-service/client")
    mkdirSync(home, { recursive: true })
    for (const name of readdirSync(join(root, "node_modules"))) {
      if (!name.startsWith(".")) symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name))
    }
    writeFileSync(join(home, "package.json"), JSON.stringify({ type: "module", exports: { ".": "./client.js" } }))
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
        const { email, license_key } = JSON.parse(await bodyOf(request))
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

/** Of the webhook that reports usage. */
export const serviceSecret = "whsec_of_the_service"

/** A product with what Stripe's prices name in their metadata. */
const catalog = Effect.gen(function* () {
  const { client } = yield* TestServer
  const product = yield* client.products.create({ payload: { name: "Editor", code: "stripe-editor" } })
  const params = { id: product.id }
  const policy = (code: string, license_type: "subscription" | "perpetual") =>
    client.policies.create({ params, payload: { name: code, code, license_type, grace_period_days: 1 } })
  const [pro, team, once] = yield* Effect.all([
    policy("pro", "subscription"),
    policy("team", "subscription"),
    policy("once", "perpetual")
  ])
  const feature = (code: string) => client.features.create({ params, payload: { name: code, code } })
  const [exports, reports] = yield* Effect.all([feature("exports"), feature("reports")])
  for (const { id: feature_id } of [exports, reports])
    yield* client.policies.setFeature({ params: { id: team.id, feature_id }, payload: teamQuota })
  const price = (id: string, metadata: Record<string, string>) => ({ id: `price_${id}`, metadata })
  const prices: Prices = {
    pro: price("pro", { licensing_policy: pro.id, licensing_quantity: "max_activations" }),
    team: price("team", { licensing_policy: team.id, licensing_quantity: "max_floating_users" }),
    once: price("once", { licensing_policy: once.id, licensing_quantity: "max_activations" }),
    exports: price("exports", { licensing_feature: exports.id, licensing_quota: "100" }),
    allExports: price("all_exports", { licensing_feature: exports.id }),
    reports: price("reports", { licensing_feature: reports.id })
  }
  return { prices, productId: product.id, teamId: team.id }
})

export class Sales extends Context.Service<
  Sales,
  Effect.Success<typeof catalog> & {
    readonly stripe: StripeFake
    readonly keys: Map<string, Array<string>>
    /** Sends a body to a path with these headers; returns the status. */
    send(body: string, headers: Record<string, string>, path?: string): Effect.Effect<number>
    /** What the program has logged. */
    logged(): string
  }
>()("licensing/test/Sales") {
  static readonly layer = Layer.effect(
    Sales,
    Effect.gen(function* () {
      const { adminToken, baseUrl } = yield* TestServer
      const sold = yield* catalog
      const stripe = new StripeFake()
      const { url: stripeUrl } = yield* stripe.serve
      const { keys, url } = yield* mailbox
      const folder = yield* program
      const env = {
        PATH: process.env["PATH"],
        LICENSING_URL: baseUrl,
        LICENSING_TOKEN: adminToken,
        PRODUCT_ID: sold.productId,
        STRIPE_URL: stripeUrl,
        STRIPE_KEY: stripeKey,
        STRIPE_SECRET: secret,
        SERVICE_SECRET: serviceSecret,
        METERS: "exports=exported_pages",
        // Suspensions can be taken back: what a storm leaves depends on its last state only.
        ON_REFUND: "suspend",
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
      const send = (body: string, headers: Record<string, string>, path = "stripe") =>
        Effect.promise(async () => {
          const answer = await fetch(`http://127.0.0.1:${port}/${path}`, {
            method: "POST",
            headers: { "content-type": "application/json", ...headers },
            body
          })
          return answer.status
        })
      return Sales.of({ ...sold, stripe, keys, send, logged: () => said.text })
    })
  )
}
