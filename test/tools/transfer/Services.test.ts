/** Lists in the shape of the APIs of Cryptlex and LicenseSpring, imported beside a running instance. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { assertAnswered, assertRefused } from "../../support/http/Http.ts"
import { TestServer } from "../../support/http/TestServer.ts"
import { operatorSettings, runLine } from "../../support/processes/CommandLine.ts"

const folderOf = (service: string) => fileURLToPath(new URL(`services/${service}`, import.meta.url))

const copyOf = Effect.fnUntraced(function* (service: string) {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "licensing-services-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  cpSync(folderOf(service), folder, { recursive: true })
  return folder
})

const run = Effect.fnUntraced(function* (service: string, folder: string, ...args: ReadonlyArray<string>) {
  const { out } = yield* runLine(yield* operatorSettings, "import", service, folder, ...args, "--json")
  assert.notMatch(out, /539E5\d|CQL\d/, "no key is printed")
  return JSON.parse(out) as {
    readonly imported: Record<string, number>
    readonly existed_already: number
    readonly unmapped: ReadonlyArray<{ readonly message: string; readonly count: number }>
    readonly faults: ReadonlyArray<unknown>
    readonly error?: string
  }
})

/** Rehearses an import, makes it and repeats it; returns what was not mapped. */
const importTwice = Effect.fnUntraced(function* (service: string, expected: Record<string, number>, present: number) {
  const { client } = yield* TestServer
  const count = Effect.map(client.licenses.list({ query: {} }), ({ items }) => items.length)
  const before = yield* count
  const rehearsed = yield* run(service, folderOf(service), "--dry-run")
  assert.deepStrictEqual([rehearsed.imported, rehearsed.faults, yield* count], [expected, [], before])
  const done = yield* run(service, folderOf(service))
  assert.deepStrictEqual([done.imported, done.unmapped], [expected, rehearsed.unmapped])
  const again = yield* run(service, folderOf(service))
  assert.deepStrictEqual([again.imported, again.existed_already], [{}, present])
  return done.unmapped.map(({ count, message }) => `${count} ${message}`)
})

const call = Effect.fnUntraced(function* (key: string, fingerprint: string, operation = "activate") {
  const { send } = yield* TestServer
  return yield* send({
    ...{ method: "POST", path: `/api/v1/license/${operation}`, anonymous: true, body: { fingerprint } },
    headers: { authorization: `License ${key}` }
  })
})
const licenseOf = Effect.fnUntraced(function* (key: string, fingerprint: string, operation?: string) {
  const { client } = yield* TestServer
  const { license_id } = assertAnswered(yield* call(key, fingerprint, operation), 200) as {
    readonly license_id: string
  }
  return yield* client.licenses.get({ params: { id: license_id } })
})

layer(TestServer.layerWith({}), { timeout: 120_000 })("Imports from other services", (it) => {
  it.effect("take a Cryptlex account with its keys, terms, seats and devices, once", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const expected = { product: 1, policy: 3, customer: 1, license: 5, device: 2 }
      const unmapped = yield* importTwice("cryptlex", expected, 10)
      assert.includeMembers(unmapped, [
        "1 products' totalLicenses is not imported",
        "6 licenses' serverSyncInterval is not imported",
        "1 licenses' subscriptionStartTrigger is not imported",
        "1 licenses' allowVmActivation is not imported",
        "2 machines' osVersion is not imported",
        "1 licenses were skipped: another page has them, too",
        "1 machines were skipped: another machine of their license has their fingerprint"
      ])
      assert.isTrue(unmapped.some((message) => /^1 machines were skipped: fingerprint/.test(message)))
      const key = (n: number) => `0A2035-E8A2A3-4D31B7-8FF9C6-81A6CA-539E5${n}`
      const license = yield* licenseOf(key(1), "ada-laptop-1", "validate")
      assert.deepInclude(license, {
        ...{ customer_email: "ada@example.com", customer_name: "Ada Lovelace", max_activations: 2 },
        ...{ expires_at: Date.UTC(2099, 4, 5, 8, 49, 17, 936), active_device_count: 1, metadata: { order: "17" } }
      })
      assertRefused(yield* call(key(2), "m"), 403, "LICENSE_SUSPENDED")
      assertRefused(yield* call(key(3), "m"), 403, "LICENSE_REVOKED")
      const [revoked] = (yield* client.licenses.list({ query: { status: "revoked" } })).items
      const { items: devices } = yield* client.devices.list({ params: { id: revoked!.id }, query: {} })
      assert.deepStrictEqual([revoked!.active_device_count, devices[0]?.status], [0, "deactivated"])
      const { items } = yield* client.licenses.list({ query: { status: "suspended" } })
      assert.deepInclude(items[0], { max_floating_users: 25 })
      const maintained = yield* licenseOf(key(4), "m")
      assert.deepInclude(maintained, { maintenance_expires_at: Date.UTC(2031, 0, 1) })
      assert.strictEqual(maintained.limits.max_activations, 0, "unlimited")
      assert.strictEqual((yield* licenseOf(key(5), "m")).max_floating_users, 2 ** 31 - 1, "unlimited")
      const events = yield* client.events.list({ query: { event_type: "license.created", resource_id: license.id } })
      assert.strictEqual(events.items.length, 1, "of a license that two pages have")
    })
  )

  it.effect("take a LicenseSpring account with its keys, terms, custom fields and devices, once", () =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const expected = { product: 1, policy: 3, customer: 1, license: 5, device: 3 }
      const unmapped = yield* importTwice("licensespring", expected, 10)
      assert.isFalse(unmapped.some((message) => message.includes("metadata")))
      assert.includeMembers(unmapped, [
        "2 licenses' max_consumptions is not imported",
        "1 the end of maintenance is not imported of licenses that expire",
        "5 licenses' status is not imported",
        "1 the start of licenses is not imported if they have devices",
        "4 machines' sdk_build_version is not imported",
        "1 machines were skipped: another machine of their license has their fingerprint"
      ])
      const key = (n: number) => `GPBQ-DZCP-E9SK-CQL${n}`
      const license = yield* licenseOf(key(1), "hw-1", "validate")
      assert.deepInclude(license, {
        ...{ expires_at: Date.UTC(2099, 11, 31), max_activations: 3, customer_name: "Grace Hopper" },
        ...{ metadata: { seats: { eu: 2 }, order: "A-17", team: "blue", custom_field_51: "23" } },
        active_device_count: 1
      })
      const customer = yield* client.customers.get({ params: { id: license.customer_id! } })
      assert.deepStrictEqual(customer.metadata, { tier: "gold", company: "Navy" })
      const { items: devices } = yield* client.devices.list({ params: { id: license.id }, query: {} })
      assert.deepStrictEqual(Object.fromEntries(devices.map(({ fingerprint = "", status }) => [fingerprint, status])), {
        ...{ "hw-1": "active", "hw-2": "deactivated", "hw-3": "blacklisted" }
      })
      assert.include(devices[0], { os: "Windows 11", ip_address: "203.0.113.7", hostname: "grace-pc" })
      assertRefused(yield* call(key(1), "hw-3"), 403, "DEVICE_BLACKLISTED")
      assertRefused(yield* call(key(2), "m"), 403, "LICENSE_SUSPENDED")
      const { expires_at, max_floating_users } = yield* licenseOf(key(3), "m")
      assert.deepStrictEqual([expires_at === undefined, max_floating_users], [false, 4])
      assert.notProperty(yield* licenseOf(key(4), "m"), "expires_at")
      assertRefused(yield* call(key(5), "m"), 403, "LICENSE_NOT_STARTED")
    })
  )

  it.effect("tell that a page of LicenseSpring is missing", () =>
    Effect.gen(function* () {
      const folder = yield* copyOf("licensespring")
      const page = JSON.parse(readFileSync(join(folder, "licenses.json"), "utf8"))
      const save = (name: string, results: ReadonlyArray<unknown>) =>
        writeFileSync(join(folder, name), JSON.stringify({ ...page, results }))
      const missing = Effect.map(run("licensespring", folder, "--dry-run"), ({ unmapped }) =>
        unmapped.flatMap(({ message }) => (message.includes("missing: the folder") ? [message] : []))
      )
      save("licenses.json", page.results.slice(0, 3))
      assert.deepStrictEqual(yield* missing, ["pages of licenses are missing: the folder has 3 of 5"])
      save("licenses-2.json", page.results.slice(3))
      assert.deepStrictEqual(yield* missing, [])
    })
  )

  it.effect("name the file, the record and the member that is wrong, and print no key", () =>
    Effect.gen(function* () {
      const folder = yield* copyOf("cryptlex")
      const file = join(folder, "licenses-1.json")
      const text = readFileSync(file, "utf8")
      const errorOf = (content: string) =>
        Effect.map(
          Effect.andThen(
            Effect.sync(() => writeFileSync(file, content)),
            run("cryptlex", folder)
          ),
          (result) => result.error
        )
      assert.match((yield* errorOf(text.replace("2099-05", "soon-05")))!, /^licenses-1.json: record 1: expiresAt: /)
      assert.match(
        (yield* errorOf(text.replace('"revoked": false', "revoked"))) ?? "",
        /^licenses-1.json: It is no JSON/
      )
    })
  )
})
