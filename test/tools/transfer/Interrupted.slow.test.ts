/** An import that is killed in the middle, beside a node that sells licenses, and is then repeated. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Postgres } from "../../../src/platform/postgres/driver/Postgres.ts"
import { Database } from "../../support/database/Database.ts"
import { assertAnswered } from "../../support/http/Http.ts"
import { runCommand, spawnProgram, startService } from "../../support/processes/Processes.ts"
import { poll } from "../../support/rules/Poll.ts"

const licenses = 6_000

layer(Database.layerUrl, { excludeTestServices: true, timeout: 300_000 })("An import that is killed", (it) => {
  it.effect(
    "is completed by the same command: nothing twice, events without gaps",
    () =>
      Effect.gen(function* () {
        const { url } = yield* Database
        const sql = Context.get(
          yield* Layer.build(Layer.fresh(Postgres.layer({ url, maxConnections: 2 }))),
          SqlClient.SqlClient
        )
        const home = yield* Effect.acquireRelease(
          Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-killed-"))),
          (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
        )
        const service = yield* startService()
        const created = (path: string, body: object) =>
          Effect.map(
            service.manage("POST", path, body),
            (answer) => assertAnswered(answer, 201) as { readonly id: string }
          )
        const product = yield* created("/products", { name: "Editor", code: "editor" })
        const policy = yield* created(`/products/${product.id}/policies`, {
          ...{ name: "Pro", code: "pro", license_type: "perpetual" }
        })
        const file = join(home, "licenses.csv")
        const rows = Array.from({ length: licenses }, (_, index) => `KILLED-KEY-${index},editor,pro,c${index >> 1}`)
        writeFileSync(file, ["license_key,product,policy,customer", ...rows].join("\n"))
        const settings = {
          LICENSING_DATABASE_URL: Redacted.value(url),
          LICENSING_MASTER_KEY: Buffer.alloc(32, 9).toString("base64")
        }
        const counted = sql<{ readonly licenses: number; readonly customers: number }>`
        SELECT (SELECT count(*)::int FROM licenses WHERE NOT metadata ? 'sold') AS licenses,
          (SELECT count(*)::int FROM customers) AS customers`

        // The node sells meanwhile: its events are numbered among those of the import.
        const selling = yield* Effect.forkChild(
          Effect.forever(
            created("/licenses", { product_id: product.id, policy_id: policy.id, metadata: { sold: true } })
          )
        )
        const { child } = yield* spawnProgram(settings, ["import", "csv", file])
        yield* poll(counted, ([found]) => found!.licenses > 500)
        yield* Effect.callback<void>((resume) => {
          child.once("exit", () => resume(Effect.void))
          child.kill("SIGKILL")
        })
        const [killed] = yield* counted
        assert.isBelow(killed!.licenses, licenses)
        const { code, error, out } = yield* runCommand(settings, "import", "csv", file, "--json")
        yield* Fiber.interrupt(selling)
        assert.strictEqual(code, 0, error)
        const { existed_already, imported } = JSON.parse(out)
        assert.isAtLeast(existed_already, killed!.licenses)
        assert.strictEqual(imported.license + existed_already, licenses)
        assert.deepStrictEqual(yield* counted, [{ licenses, customers: licenses / 2 }])
        const [events] = yield* sql`
        SELECT count(*) = max(sequence) AND min(sequence) = 1 AND max(sequence) = (SELECT last FROM event_sequence) AS gapless,
          count(*) FILTER (WHERE event_type = 'license.created' AND metadata ? 'imported')::int AS imported,
          count(DISTINCT resource_id) FILTER (WHERE event_type = 'license.created' AND metadata ? 'imported')::int AS distinct
        FROM event_log`
        assert.deepStrictEqual(events, { gapless: true, imported: licenses, distinct: licenses })
        const answer = yield* service.call(`KILLED-KEY-${licenses - 1}`, "activate", { fingerprint: "m" })
        assertAnswered(answer, 200)
      }).pipe(Effect.scoped),
    300_000
  )
})
