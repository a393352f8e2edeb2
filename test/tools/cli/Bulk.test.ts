/** Changes of many licenses from the command line, beside a running instance. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Database } from "../../support/database/Database.ts"
import { makeLicense, makeProduct } from "../../support/http/ProductTokens.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { operatorSettings, runLine } from "../../support/processes/CommandLine.ts"

const run = Effect.fnUntraced(function* (code: number, ...args: ReadonlyArray<string>) {
  const result = yield* runLine(yield* operatorSettings, "bulk", ...args)
  assert.strictEqual(result.code, code, result.error)
  return result
})

layer(TestServer.layerOver().pipe(Layer.provideMerge(Database.layerUrl)), { timeout: 60_000 })(
  "`licensing bulk`",
  (it) => {
    it.effect("requests a job, shows it, lists it and cancels it", () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const product = yield* makeProduct
        const license = yield* makeLicense(product)
        const parameters = JSON.stringify({ extend_by_days: 30 })
        const filtered = ["--filter", `product_id=${product.id}`, "--filter", "status=active"]
        const made = yield* run(
          0,
          "create",
          "renew",
          ...filtered,
          "--parameters",
          parameters,
          "--reason",
          "A gift",
          "--json"
        )
        const job = yield* client.bulkJobs.get({ params: { id: JSON.parse(made.out).id } })
        assert.deepInclude(job, {
          ...{ action: "renew", dry_run: false, matched: 1, reason: "A gift", created_by: "cli" },
          filter: { product_id: product.id, status: "active" },
          parameters: { extend_by_days: 30 }
        })
        const line = new RegExp(`^${job.id}  renew  pending  0 of 1: 0 changed, 0 unchanged, 0 refused  `, "m")
        for (const args of [["show", job.id], ["list"]]) assert.match((yield* run(0, ...args)).out, line)
        assert.match((yield* run(0, "cancel", job.id)).out, / {2}canceled {2}/)
        assert.match((yield* run(1, "cancel", job.id)).failure, /is canceled/)
        const tried = yield* run(0, "create", "revoke", "--license", license.id, "--dry-run")
        assert.match(tried.out, / {2}revoke \(dry run\) {2}pending {2}0 of 1: /)
        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE bulk_jobs SET status = 'failed', failure = 'It broke.', ended_at = now() WHERE id = ${job.id}`
        assert.match((yield* run(0, "show", job.id)).out, /\nIt broke\.$/)
      })
    )

    it.effect("says what a wrong request lacks, and requests nothing", () =>
      Effect.gen(function* () {
        const { client } = yield* TestServer
        const before = (yield* client.bulkJobs.list({ query: {} })).items.length
        for (const [args, message] of [
          [["create", "suspend"], /Give either --filter or --license or --all\./],
          [
            ["create", "suspend", "--filter", "q=a", "--license", "lic_x"],
            /Give either --filter or --license or --all\./
          ],
          [["create", "suspend", "--filter", "status"], /--filter status has no value/],
          [["create", "suspend", "--filter", "colour=red"], /colour/],
          [["create", "suspend", "--filter", "status=active", "--filter", "status=expired"], /each name once/],
          [["create", "suspend", "--all", "--filter", "status=active"], /Give either --filter/],
          [["create", "suspend", "--all", "--parameters", "{"], /no JSON/],
          [["create", "suspend", "--all", "--parameters", '{"policy_id": "pol_1"}'], /no parameters of suspend/],
          [["create", "renew", "--all"], /exactly one of expires_at and extend_by_days/],
          [["create", "destroy", "--all"], /suspend/]
        ] as const) {
          const result = yield* runLine(yield* operatorSettings, "bulk", ...args)
          assert.notStrictEqual(result.code, 0, args.join(" "))
          assert.match(`${result.error}\n${result.failure}`, message)
        }
        assert.strictEqual((yield* client.bulkJobs.list({ query: {} })).items.length, before)
      })
    )
  }
)
