/**
 * The console compiles against the contract: whoever renames a member that it uses is told where. The contract is renamed in a copy,
 * all at once, and each rename must be reported in the file that uses it.
 */
import { execFile } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"

const root = fileURLToPath(new URL("../../../..", import.meta.url))
const minutes = 5 * 60_000

interface Rename {
  readonly what: string
  readonly file: string
  readonly from: string
  readonly to: string
  /** The file of the console that no longer compiles. */
  readonly reported: string
}

const renames: ReadonlyArray<Rename> = [
  {
    what: "a response's field",
    file: "licensing/model/License.ts",
    from: "  times_transferred: Count",
    to: "  times_moved: Count",
    reported: "consequences/LimitRows.ts"
  },
  {
    what: "a required field of a body",
    file: "vendor/customers/Customer.ts",
    from: "export const CustomerCreate = Schema.Struct({\n  name: Name",
    to: "export const CustomerCreate = Schema.Struct({\n  title: Name",
    reported: "customers/CustomerFields.ts"
  },
  {
    what: "an optional field of a body",
    file: "licensing/model/LicenseFeature.ts",
    from: "  add_credits: Schema.optionalKey",
    to: "  more_credits: Schema.optionalKey",
    reported: "quotas/LicenseFeatures.tsx"
  },
  {
    what: "a query parameter",
    file: "insight/activities/Activity.ts",
    from: "  license_id: Schema.optionalKey(FilterText)",
    to: "  license: Schema.optionalKey(FilterText)",
    reported: "licenses/Timeline.tsx"
  },
  {
    what: "a path parameter",
    file: "licensing/devices/Api.ts",
    from: "{ id: Schema.String, device_id: Schema.String }",
    to: "{ id: Schema.String, machine_id: Schema.String }",
    reported: "devices/DeviceActions.tsx"
  },
  {
    what: "a value of an enumeration",
    file: "vendor/policies/Policy.ts",
    from: `Schema.Literals(["creation", "first_activation"])`,
    to: `Schema.Literals(["creation", "activation"])`,
    reported: "catalog/PolicyFields.ts"
  },
  {
    what: "an operation",
    file: "clients/client/OperationNames.ts",
    from: "rotateLicenseKey:",
    to: "replaceLicenseKey:",
    reported: "licenses/LicenseActions.tsx"
  }
]

const copy = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "licensing-compile-"))
    cpSync(join(root, "src"), join(folder, "src"), { recursive: true })
    cpSync(join(root, "tsconfig.json"), join(folder, "tsconfig.json"))
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** What the compiler reports about the web pages of a project. */
const compile = (folder: string) =>
  Effect.callback<string>((resume) => {
    // Each further thread would check the same declarations again, for twice the work.
    const arguments_ = ["--checkers", "1", "--noEmit", "--pretty", "false", "-p", join(folder, "src/clients")]
    execFile(join(root, "node_modules/.bin/tsc"), arguments_, { cwd: folder, maxBuffer: 2 ** 26 }, (_, out) =>
      resume(Effect.succeed(out))
    )
  })

it.effect(
  "The console's compiler reports every renamed member of the contract",
  () =>
    Effect.gen(function* () {
      const folder = yield* copy
      for (const { file, from, to } of renames) {
        const path = join(folder, "src", file)
        const text = readFileSync(path, "utf8")
        assert.include(text, from)
        writeFileSync(path, text.replace(from, to))
      }
      const reports = yield* compile(folder)
      for (const { reported, what } of renames) assert.include(reports, `src/clients/console/${reported}(`, what)
    }).pipe(Effect.scoped),
  minutes
)
