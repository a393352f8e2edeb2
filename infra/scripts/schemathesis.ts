/**
 * Lets Schemathesis compare the document with a running service: generated requests, valid and invalid ones, with all its checks
 * (docs/TESTING.md, "Schemathesis"). The program `schemathesis` must be installed: pip install schemathesis==<version of TESTING.md>.
 *
 *   npm run schemathesis                         all operations
 *   npm run schemathesis -- --max-examples 20 --seed 1     its own options follow
 */
import { spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openApiDocument } from "../../src/edge/documents/Document.ts"
import { openApiJson } from "../../src/edge/documents/publishing/Documents.ts"
import { root, startService } from "./service.ts"

const folder = mkdtempSync(join(tmpdir(), "licensing-schemathesis-"))
// PostgreSQL does not run as root: its own user needs access to the folder.
chmodSync(folder, 0o711)
const token = `schemathesis_${randomBytes(32).toString("base64url")}`
const unlimited = Object.fromEntries(
  ["RUNTIME", "ACTIVATION", "MANAGEMENT", "FAILURES"].map((name) => [`LICENSING_RATE_${name}`, "0"])
)
// With mail, so that keys are sent; no server answers there.
const mail = { LICENSING_SMTP_URL: "smtp://127.0.0.1:9", LICENSING_MAIL_FROM: "licenses@vendor.example" }
const settings = { LICENSING_DATA_DIR: join(folder, "data"), LICENSING_BOOTSTRAP_TOKEN: token, ...unlimited, ...mail }
const service = await startService({ settings, log: join(folder, "service.log") })

interface Created {
  readonly id: string
  readonly license_key: string
}

const create = async (path: string, body: object): Promise<Created> => {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
  const response = await fetch(`${service.base}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(await response.text())
  return ((await response.json()) as { readonly data: Created }).data
}

/** The key of a license with a metered feature, for the runtime operations. */
const licenseKey = async (): Promise<string> => {
  const product = await create("/products", { name: "Editor", code: "schemathesis" })
  const policy = await create(`/products/${product.id}/policies`, {
    name: "Forever",
    code: "forever",
    license_type: "perpetual",
    max_activations: 0,
    max_floating_users: 1_000_000
  })
  const feature = await create(`/products/${product.id}/features`, { name: "Export", code: "export" })
  const { license_key } = await create("/licenses", {
    product_id: product.id,
    policy_id: policy.id,
    features: [{ feature_id: feature.id }]
  })
  return license_key
}

/** Apart, because Schemathesis changes all records that it finds: it would revoke the license and the API key that others need. */
const parts = [
  // No link leads to these operations.
  ["--include-tag", "runtime", "--phases", "examples,coverage,fuzzing"],
  ["--exclude-tag", "runtime", "--exclude-tag", "api-keys"],
  ["--include-tag", "api-keys"]
]

try {
  const document = join(folder, "openapi.json")
  writeFileSync(document, openApiJson(openApiDocument()))
  copyFileSync(join(root, "infra/schemathesis_hooks.py"), join(folder, "schemathesis_hooks.py"))
  const config = join(root, "infra/schemathesis.toml")
  const env = { ...process.env, SCHEMATHESIS_TOKEN: token, SCHEMATHESIS_LICENSE_KEY: await licenseKey() }
  for (const part of parts) {
    const args = ["--config-file", config, "run", document, "--url", service.base, ...part, ...process.argv.slice(2)]
    const { status } = spawnSync("schemathesis", args, { stdio: "inherit", cwd: folder, env })
    if (status !== 0) process.exitCode = 1
  }
} finally {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
}
