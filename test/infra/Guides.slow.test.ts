/** Executes the commands of docs/OPERATIONS.md and of the guides that need only a running service, in a fresh folder. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { clone, execute, running, shell } from "../support/processes/Checkout.ts"
import { blocksOf } from "../support/processes/DocumentBlocks.ts"
import { freePort } from "../support/processes/FreePort.ts"

const minutes = 6 * 60_000
const token = "documented-token-of-more-than-32-characters"

const block = (page: string, heading: string, index = 0): string =>
  blocksOf(page).filter(({ heading: its, language }) => its === heading && language === "sh")[index]?.code ??
  assert.fail(`${page} has no such block`)

it.live(
  "docs/OPERATIONS.md and the guides: probes, an import, an export, an erasure and a backup",
  () =>
    Effect.gen(function* () {
      const folder = yield* clone
      const bin = join(folder, "bin")
      mkdirSync(bin)
      symlinkSync(join(folder, "infra/licensing"), join(bin, "licensing"))
      const port = String(yield* freePort)
      const base = `http://127.0.0.1:${port}`
      const settings = { LICENSING_PORT: port, LICENSING_BOOTSTRAP_TOKEN: token, LICENSING_LOG_FORMAT: "pretty" }
      const run = (script: string) =>
        execute(folder, script.replaceAll("http://127.0.0.1:8080", base), {
          PATH: `${bin}:${process.env["PATH"]}`,
          LICENSING_TOKEN: token
        })
      const manage = (path: string, body?: object) =>
        Effect.promise(async () => {
          // While a command runs this process answers nothing, and the service closes idle connections.
          const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", connection: "close" }
          const sent = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }
          const response = await fetch(`${base}/api/v1${path}`, { headers, ...sent })
          return ((await response.json()) as { readonly data: never }).data
        })

      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* running(folder, "npm start", settings, /The licensing service is ready/)
          const probes = run(block("docs/OPERATIONS.md", "First checks"))
          assert.match(probes, /"status":"ok".*"status":"ready"/s)

          const { id } = yield* manage("/products", { name: "Editor", code: "editor" })
          yield* manage(`/products/${id}/policies`, { name: "Pro", code: "pro", license_type: "time_limited" })
          const csv = blocksOf("docs/guides/import-csv.md").find(({ language }) => language === "csv")
          writeFileSync(join(folder, "licenses.csv"), csv?.code ?? "")
          run(shell("docs/guides/import-csv.md")[0] ?? "")
          const licenses: ReadonlyArray<{ readonly customer_id: string }> = yield* manage("/licenses")
          assert.lengthOf(licenses, 2)

          run(block("docs/OPERATIONS.md", "Export and import"))
          assert.lengthOf(yield* manage("/licenses"), 2)

          const checks = run(shell("docs/guides/upgrade.md")[0] ?? "")
          assert.match(checks, /"status":"ready".*active.*"data":\[/s)

          const erase = (shell("docs/guides/personal-data.md")[0] ?? "")
            .replace("https://licenses.example.com", base)
            .replace("cust_…/erase", `${licenses[0]!.customer_id}/erase`)
          assert.include(run(erase), '"status":"erased"')
        })
      )
      const backup = join(folder, "backup")
      mkdirSync(backup)
      const lines = block("docs/OPERATIONS.md", "Backup and restore", 1)
        .replaceAll("/backup/", `${backup}/`)
        .replaceAll(/2026-\d\d-\d\d/g, "$(date +%F)")
        .replace("8081", port)
        .trim()
        .split("\n")
      run(lines.slice(0, -1).join("\n"))
      yield* running(folder, `env ${lines.at(-1)}`, settings, /The licensing service is ready/)
      assert.lengthOf(yield* manage("/licenses"), 2)
    }).pipe(Effect.scoped),
  minutes
)
