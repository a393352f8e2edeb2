/**
 * A new user's first five minutes, over HTTP alone: create a product, sell a license, use its quota, suspend it, deactivate the
 * device. Every runtime response, refusals too, is judged from its raw bytes by the rules of docs/VERIFYING.md. Exits with 1 at the first
 * unexpected response.
 *
 *   npm run tour                                  starts a separate service in a temporary folder and stops it at the end
 *   npm run tour -- --runtime deno                the same with the service on Deno
 *   npm run tour -- --url <address> --token <API token>   on a running service (or LICENSING_URL and LICENSING_TOKEN)
 */
import { createHash, randomBytes } from "node:crypto"
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { bindingHashOf } from "../../src/clients/kit/judging/BindingHash.ts"
import { type Runtime, startService } from "./service.ts"
import { type JsonObject, TourClient } from "./tourClient.ts"

const { values: flags } = parseArgs({
  options: {
    url: { type: "string", default: process.env["LICENSING_URL"] ?? "" },
    token: { type: "string", default: process.env["LICENSING_TOKEN"] ?? "" },
    runtime: { type: "string", default: "node" }
  }
})

const dayMillis = 86_400_000
const unique = randomBytes(4).toString("hex")
const laptop = { fingerprint: `laptop-${unique}`, hostname: "ada-laptop", os: "linux" }
const quota = 5

/** The vendor's setup before the first sale. */
const setUp = async (vendor: TourClient) => {
  const product = await vendor.manage("Create a product", "POST", "/products", 201, {
    name: "Editor",
    code: `editor-${unique}`
  })
  const policy = await vendor.manage(
    "Create a policy: yearly, on one device",
    "POST",
    `/products/${product["id"]}/policies`,
    201,
    {
      name: "Yearly, one seat",
      code: "yearly",
      license_type: "subscription",
      max_activations: 1
    }
  )
  const feature = await vendor.manage(
    "Create a feature that is metered",
    "POST",
    `/products/${product["id"]}/features`,
    201,
    {
      name: "PDF export",
      code: "export"
    }
  )
  return { product, policy, feature }
}

/** Issues a license. Its key is shown only in this response. */
const sell = async (vendor: TourClient, { product, policy, feature }: Awaited<ReturnType<typeof setUp>>) => {
  const sold = await vendor.manage("Issue a license: the key is shown only here", "POST", "/licenses", 201, {
    product_id: product["id"],
    policy_id: policy["id"],
    customer_name: "Ada Lovelace",
    customer_email: "ada@example.com",
    expires_at: new Date(vendor.now() + 365 * dayMillis).toISOString()
  })
  const license = sold["license"] as JsonObject
  vendor.expect("the new license's status", license["status"], "active")
  const assigned = await vendor.manage(
    `Assign the feature: ${quota} exports`,
    "POST",
    `/licenses/${license["id"]}/features`,
    200,
    {
      feature_id: feature["id"],
      max_consumptions: quota
    }
  )
  vendor.expect("what remains of the quota", assigned["remaining"], quota)
  return { id: String(license["id"]), key: String(sold["license_key"]) }
}

const meterOf = (entitlement: JsonObject) => {
  const [meter] = entitlement["features"] as ReadonlyArray<JsonObject>
  return { code: meter?.["code"], consumed: meter?.["consumed"], remaining: meter?.["remaining"] }
}

/** The calls of the licensed application on the customer's machine, until the quota is used up. */
const use = async (app: TourClient) => {
  const entitlement = await app.run("Activate the customer's laptop", "activate", laptop)
  app.expect("the status", entitlement["status"], "active")
  app.expect("the meter", meterOf(entitlement), { code: "export", consumed: 0, remaining: quota })
  const other = { fingerprint: `desktop-${unique}` }
  await app.refused("A second device is one too many", "activate", other, 403, "ACTIVATION_LIMIT_REACHED")
  const validated = await app.run("Validate, as the application does when it starts", "validate", laptop)
  app.expect("the device", validated["device_id"], entitlement["device_id"])
  const consume = (title: string, event: string, amount: number) =>
    app.run(title, "consume", { ...laptop, feature_code: "export", event_id: `${event}-${unique}`, amount })
  const three = { code: "export", consumed: 3, remaining: 2 }
  app.expect("the meter", meterOf(await consume("Consume three exports", "first", 3)), three)
  app.expect("the meter", meterOf(await consume("Send the same event again: it counts once", "first", 3)), three)
  const spent = { code: "export", consumed: quota, remaining: 0 }
  app.expect("the meter", meterOf(await consume("Consume the last two", "second", 2)), spent)
  const further = { ...laptop, feature_code: "export", event_id: `third-${unique}` }
  await app.refused("One more does not fit, and nothing is counted", "consume", further, 403, "USAGE_LIMIT_EXCEEDED")
  return validated
}

/** Suspension and reinstatement take effect at once; then the device is deactivated. */
const suspendAndReturn = async (vendor: TourClient, app: TourClient, id: string, before: JsonObject) => {
  const suspended = await vendor.manage("Suspend the license", "POST", `/licenses/${id}/suspend`, 200)
  vendor.expect("the status", suspended["status"], "suspended")
  await app.refused("The application is refused from now on", "validate", laptop, 403, "LICENSE_SUSPENDED")
  const reinstated = await vendor.manage("Reinstate it", "POST", `/licenses/${id}/reinstate`, 200)
  vendor.expect("the status", reinstated["status"], "active")
  const again = await app.run("The application is served again", "validate", laptop)
  const moved = Number(again["entitlement_version"]) > Number(before["entitlement_version"])
  app.expect("that the entitlement version has risen", moved, true)
  const returned = await app.run("Deactivate the laptop: its seat is free again", "deactivate", laptop)
  app.expect("the device", returned["device_id"], before["device_id"])
  await app.refused("A device that gave its seat back is not served", "validate", laptop, 403, "DEVICE_NOT_ACTIVE")
  const license = await vendor.manage("What the vendor sees in the end", "GET", `/licenses/${id}`, 200)
  const counters = [license["active_device_count"], license["times_activated"], license["total_consumptions"]]
  vendor.expect("devices now, activations and consumptions ever", counters, [0, 1, quota])
}

/** Exports the usage as a document, and checks its digest. */
const report = async (vendor: TourClient, id: string) => {
  const made = await vendor.manage("Report what was used, as a document to forward", "POST", "/reports/exports", 201, {
    report_kind: "usage-ledger",
    format: "pdf",
    filters: { license_id: id }
  })
  vendor.expect("the status", made["status"], "completed")
  const file = await vendor.download("Download it", `/reports/exports/${made["id"]}/download`)
  vendor.expect("that it is a PDF", file.subarray(0, 5).toString(), "%PDF-")
  vendor.expect("its digest", createHash("sha256").update(file).digest("hex"), made["artifact_digest"])
}

const tour = async (base: string, token: string) => {
  const vendor = await TourClient.connect(base, `Bearer ${token}`)
  const catalog = await setUp(vendor)
  const { product } = catalog
  const { id, key } = await sell(vendor, catalog)
  const app = vendor.as(`License ${key}`)
  // The product's code is a constant in the application, its binding key is the machine's fingerprint.
  app.know({
    license_id: id,
    product_id: String(product["id"]),
    product_code: String(product["code"]),
    binding: await bindingHashOf(laptop)
  })
  const before = await use(app)
  await suspendAndReturn(vendor, app, id, before)
  await report(vendor, id)
  vendor.summarize()
}

/** Runs the tour on a temporary service. */
const withTemporaryService = async (run: (base: string, token: string) => Promise<void>) => {
  const folder = mkdtempSync(join(tmpdir(), "licensing-tour-"))
  // PostgreSQL does not run as root: its own user needs access to the folder.
  chmodSync(folder, 0o711)
  const token = `tour_${randomBytes(32).toString("base64url")}`
  const runtime = flags.runtime as Runtime
  const settings = { LICENSING_DATA_DIR: join(folder, "data"), LICENSING_BOOTSTRAP_TOKEN: token }
  try {
    const service = await startService({ runtime, settings, log: join(folder, "service.log") })
    // An interrupted tour leaves nothing running.
    process.once("SIGINT", () => service.stop().then(() => process.exit(130)))
    await run(service.base, token).finally(() => service.stop())
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const started = flags.url === "" ? withTemporaryService(tour) : tour(flags.url.replace(/\/$/, ""), flags.token)
await started.catch((error: Error) => {
  process.stderr.write(`\n${error.message}\n`)
  process.exitCode = 1
})
