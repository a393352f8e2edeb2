/** Scenarios that together run every runtime operation and produce every refusal, and their run on one of the two runtime paths. */

import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Refusals } from "../../../src/insight/activities/Refusals.ts"
import { Validations } from "../../../src/licensing/runtime/Validations.ts"
import type { PolicyCreate } from "../../../src/vendor/policies/Policy.ts"
import { listActivities } from "../../support/http/Activities.ts"
import { type ComparableAnswer, normalized, type RuntimePath, RuntimePaths } from "../../support/http/FastPath.ts"
import type { Answer } from "../../support/http/Http.ts"
import { issue } from "../../support/http/IssuedLicenses.ts"
import { TestServer } from "../../support/http/TestServer.ts"

type IssuedLicense = Effect.Success<ReturnType<typeof issue>>
type Body = object | ((answers: ReadonlyArray<Answer>) => object)

/** A runtime operation with its body, and the code of its refusal, or 200; or something that is done to the license meanwhile. */
type Step =
  | readonly [operation: string, body: Body, outcome: string | 200]
  | ((license: IssuedLicense) => Effect.Effect<unknown, unknown, TestServer>)

export interface Scenario {
  readonly policy?: Partial<typeof PolicyCreate.Type>
  readonly given?: Parameters<typeof issue>[1]
  readonly steps: ReadonlyArray<Step>
}

const day = 86_400_000
const m = { fingerprint: "m", hostname: "h\u00f6st", os: "linux" }
const box = { is_container: true, pod_name: "p" }
const machineOperations = ["activate", "validate", "check", "deactivate", "offline", "floating/checkout"]
const token = { lease_token: "none" }
const operations = ["floating/heartbeat", "floating/checkin"]
const export_ = { ...m, feature_code: "exports", event_id: "e1" }

/** A seat of the machine, borrowed for so many days. Scenarios that move the clock come later. */
const until = (days: number) => ({ ...m, until: new Date(Date.now() + days * day).toISOString() })

/** Every operation refused with the same code, but for deactivate, which only a revoked license refuses. */
const all = (code: string, deactivated: string | 200): ReadonlyArray<Step> => [
  ...machineOperations.map((operation): Step => [operation, m, operation === "deactivate" ? deactivated : code]),
  ["consume", export_, code],
  ...operations.map((operation): Step => [operation, token, code])
]

const post =
  (action: string, body?: object): Step =>
  (license) =>
    license.post(action, body)

const feature =
  (code: string, given: object, days?: number): Step =>
  ({ id, product_id }) =>
    Effect.gen(function* () {
      const { client } = yield* TestServer
      const made = yield* client.features.create({ params: { id: product_id }, payload: { name: code, code } })
      const { created_at } = yield* client.licenses.get({ params: { id } })
      const ending = days === undefined ? undefined : { expires_at: created_at + days * day }
      yield* client.licenses.assignFeature({ params: { id }, payload: { feature_id: made.id, ...given, ...ending } })
    })

const version =
  (text: string, released_at: number): Step =>
  ({ product_id }) =>
    Effect.flatMap(TestServer, ({ client }) =>
      client.versions.create({ params: { id: product_id }, payload: { version: text, released_at } })
    )

const device =
  (verb: string): Step =>
  ({ path }) =>
    Effect.gen(function* () {
      const { send } = yield* TestServer
      const { json } = yield* send({ path: `${path}/devices` })
      for (const { id } of (json as { readonly data: ReadonlyArray<{ readonly id: string }> }).data)
        yield* send({ method: "POST", path: `${path}/devices/${id}/${verb}` })
    })

const later =
  (seconds: number): Step =>
  () =>
    Effect.flatMap(TestServer, ({ advance }) => advance(seconds))

const leased = (answers: ReadonlyArray<Answer>) => {
  const { json } = answers.findLast(({ text }) => text.includes("lease_token")) ?? {}
  const { data } = json as { readonly data: { readonly lease_token: string } }
  return { lease_token: data.lease_token }
}

export const runtimeScenarios: { readonly [name: string]: Scenario } = {
  "borrowed seats": {
    policy: { max_floating_users: 1, floating_timeout_minutes: 5, borrow_days_max: 2 },
    steps: [
      ["floating/checkout", until(-1), "VALIDATION_ERROR"],
      ["floating/checkout", until(3), "BORROW_TOO_LONG"],
      ["floating/checkout", until(1), 200],
      post("suspend"),
      post("reinstate"),
      ["floating/checkout", { fingerprint: "another" }, "FLOATING_LIMIT_REACHED"],
      ["floating/heartbeat", leased, 200],
      ["floating/checkin", leased, 200]
    ]
  },
  "a device, its validations and its offline envelope": {
    steps: [
      ["activate", m, 200],
      ["activate", m, 200],
      ["validate", { ...m, is_vm: false, app_version: "1.0" }, 200],
      ["check", m, 200],
      ["check", { ...m, app_version: "1.0 f\u00fcr \u0141ucja \ud83d\ude00" }, 200],
      ["offline", m, 200],
      ["activate", { fingerprint: "another" }, "ACTIVATION_LIMIT_REACHED"],
      ["validate", { fingerprint: "another" }, "DEVICE_NOT_FOUND"],
      ["check", { fingerprint: "another" }, "DEVICE_NOT_FOUND"],
      ["deactivate", { fingerprint: "another" }, "DEVICE_NOT_FOUND"],
      ["deactivate", m, 200],
      ["deactivate", m, "DEVICE_STATE_CONFLICT"],
      ["validate", m, "DEVICE_NOT_ACTIVE"],
      ["check", m, "DEVICE_NOT_ACTIVE"],
      ["consume", export_, "DEVICE_NOT_ACTIVE"],
      ["activate", { fingerprint: "\ud83d\ude00 \u017d" }, 200],
      device("blacklist"),
      ["validate", m, "DEVICE_BLACKLISTED"],
      ["activate", m, "DEVICE_BLACKLISTED"]
    ]
  },
  "what is used": {
    steps: [
      feature("exports", { max_consumptions: 3 }),
      feature("off", { enabled: false }),
      feature("brief", {}, 1),
      feature("endless", {}),
      ["activate", m, 200],
      ["consume", export_, 200],
      ["consume", export_, 200],
      ["consume", { ...export_, amount: 2 }, "EVENT_ID_CONFLICT"],
      ["consume", { ...export_, event_id: "e2", amount: 3 }, "USAGE_LIMIT_EXCEEDED"],
      ["consume", { ...export_, event_id: "e2", amount: 2 }, 200],
      ["consume", { ...export_, feature_code: "none", event_id: "e3" }, "FEATURE_NOT_ENTITLED"],
      ["consume", { ...export_, feature_code: "off", event_id: "e3" }, "FEATURE_DISABLED"],
      ["consume", { ...export_, feature_code: "endless", event_id: "e4", amount: 2 ** 53 - 10 }, 200],
      ["consume", { ...export_, feature_code: "endless", event_id: "e5", amount: 100 }, "VALIDATION_ERROR"],
      ["validate", m, 200],
      later((2 * day) / 1_000),
      ["consume", { ...export_, feature_code: "brief", event_id: "e6" }, "FEATURE_EXPIRED"]
    ]
  },
  seats: {
    policy: { max_floating_users: 1, floating_timeout_minutes: 5 },
    steps: [
      ["floating/checkout", m, 200],
      ["floating/heartbeat", leased, 200],
      ["floating/checkout", m, 200],
      ["floating/checkout", { fingerprint: "another" }, "FLOATING_LIMIT_REACHED"],
      ["floating/checkout", until(1), "BORROWING_NOT_ALLOWED"],
      ["floating/heartbeat", token, "LEASE_NOT_FOUND"],
      ["floating/checkin", token, "LEASE_NOT_FOUND"],
      ["floating/checkin", leased, 200],
      ["floating/checkin", leased, "LEASE_NOT_ACTIVE"],
      ["floating/heartbeat", leased, "LEASE_NOT_ACTIVE"],
      ["floating/checkout", m, 200],
      later(600),
      ["floating/heartbeat", leased, 200],
      later((2 * day) / 1_000),
      ["floating/heartbeat", leased, "LEASE_EXPIRED"]
    ]
  },
  "a machine that is not wanted": {
    policy: { allow_vm: false, allow_container: false, allow_offline_activation: false },
    steps: [
      ["activate", { ...m, is_vm: true }, "VM_NOT_ALLOWED"],
      ["activate", box, "CONTAINER_NOT_ALLOWED"],
      ["floating/checkout", m, "FLOATING_NOT_ENABLED"],
      ["offline", m, "OFFLINE_NOT_ALLOWED"]
    ]
  },
  containers: {
    policy: { max_container_instances: 1 },
    steps: [
      ["activate", box, 200],
      ["validate", { ...box, cluster_id: undefined }, 200],
      ["activate", { ...box, pod_name: "another" }, "CONTAINER_LIMIT_REACHED"],
      ["consume", { ...box, feature_code: "none", event_id: "e" }, "FEATURE_NOT_ENTITLED"]
    ]
  },
  versions: {
    steps: [
      version("1.0", Date.now() - day),
      version("9.0", Date.now() + 400 * day),
      ["activate", { ...m, app_version: "1.0" }, 200],
      ["validate", { ...m, app_version: "2.0" }, "VERSION_UNKNOWN"],
      ["check", { ...m, app_version: "9.0" }, "VERSION_NOT_ENTITLED"]
    ]
  },
  "a heartbeat that is late": {
    policy: { require_heartbeat: true, validation_interval_minutes: 1 },
    steps: [["activate", m, 200], later(600), ["validate", m, "HEARTBEAT_OVERDUE"], ["activate", m, 200]]
  },
  "a license that has not started": {
    given: { starts_at: Date.now() + 400 * day, expires_at: Date.now() + 800 * day },
    steps: all("LICENSE_NOT_STARTED", "DEVICE_NOT_FOUND")
  },
  "a suspended license": { steps: [["activate", m, 200], post("suspend"), ...all("LICENSE_SUSPENDED", 200)] },
  "a revoked license": { steps: [["activate", m, 200], post("revoke"), ...all("LICENSE_REVOKED", "LICENSE_REVOKED")] },
  "an expired license": {
    steps: [["activate", m, 200], later((31 * day) / 1_000), ...all("LICENSE_EXPIRED", 200)]
  }
}

export const runScenario = Effect.fnUntraced(function* (
  way: RuntimePath,
  { given, policy, steps }: Scenario,
  index: number
) {
  const { asked, faceOf, remember } = yield* RuntimePaths
  const license = yield* issue(policy, given)
  yield* remember(license)
  const before = yield* counted
  const faces: Array<ComparableAnswer> = []
  const answers: Array<Answer> = []
  const outcomes: Array<string> = []
  for (const step of steps) {
    if (typeof step === "function") {
      yield* step(license)
      continue
    }
    const [operation, body] = step
    const sent = typeof body === "function" ? body(answers) : body
    const answer = yield* asked(operation === "offline" ? "framework" : way, license.license_key, operation, sent, {
      "x-request-id": `scenario-${index}-${answers.length}-0001`
    })
    answers.push(answer)
    outcomes.push(answer.error.code ?? String(answer.status))
    faces.push(yield* faceOf(answer))
  }
  const after = yield* counted
  const counts = Object.fromEntries(
    [...after].map(([name, value]) => [name, value - (before.get(name) ?? 0)]).filter(([, value]) => value !== 0)
  )
  return { faces, outcomes, counts, left: yield* leftBy(license.id) }
})

/** What the node counts of runtime requests, by name. */
const counted = Effect.gen(function* () {
  const { client, send } = yield* TestServer
  const { text } = yield* send({ path: "/metrics", anonymous: true })
  const samples = text
    .split("\n")
    .filter((line) => line.includes("/api/v1/license/") && (line.includes("_total{") || line.includes("_count{")))
    .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))] as const)
  assert.isNotEmpty(samples)
  return new Map([...samples, ...Object.entries((yield* client.ops.errors()).counts)])
})

/** What is written of a license: itself, its devices and features, the ledger, the feed with its refusals, the validations. */
const leftBy = Effect.fnUntraced(function* (license_id: string) {
  const { send } = yield* TestServer
  const sql = yield* SqlClient.SqlClient
  yield* (yield* Refusals).pass
  yield* (yield* Validations).pass
  const path = `/api/v1/licenses/${license_id}`
  const pages = [path, `${path}/devices`, `${path}/features`, `/api/v1/reports/usage-ledger?license_id=${license_id}`]
  const seen: Array<unknown> = []
  for (const page of pages) {
    const { json } = yield* send({ path: page })
    seen.push((json as { readonly data: unknown }).data)
  }
  const feed = (yield* listActivities({ license_id })).map(({ sequence: _, event_sequence: __, ...row }) => row)
  const validations = yield* sql`SELECT validations, refused FROM license_validations WHERE license_id = ${license_id}`
  assert.isNotEmpty(feed)
  return plain([...seen, feed, validations])
})

/** Codes of products and licenses' keys are of this license alone. */
const plain = (value: unknown): unknown =>
  JSON.parse(
    normalized(JSON.stringify(value, (name, member) => (own.has(name) ? "<own>" : member)))
      .replaceAll(/sha256:[0-9a-f]{12}/g, "sha256:?")
      .replaceAll(/issued-\d+/g, "issued-?")
  )

const own = new Set(["license_key_prefix", "license_key_last4", "sequence", "digest", "ledger_sequence"])
