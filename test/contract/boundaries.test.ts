/**
 * Document and service agree about what is valid: values at a documented limit are not refused, and parameters beyond it are.
 * The fuzz test has the bodies beyond their limits. Schemathesis checks the same from outside (docs/TESTING.md).
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Answer } from "../support/http/Http.ts"
import { allowedBy, forbiddenBy } from "./cases/Boundaries.ts"
import { Conversation, type Request } from "./cases/Conversation.ts"
import { bodyOf, Fixtures, queryOf, requestOf } from "./cases/Fixtures.ts"
import { Shared, Subject, withBody } from "./cases/Fuzz.ts"
import { type Json, type Operation, operations, resolved } from "./cases/Surface.ts"

/** Fields and parameters whose values must fit something else, which a schema cannot say. Each operation describes it in words. */
const inWords: ReadonlySet<string> = new Set([
  "createApiKey allowed_cidrs",
  "updateApiKey allowed_cidrs",
  "updateApiKey product_ids",
  "createPolicy public_trial",
  "updatePolicy public_trial",
  "createBulkJob license_ids",
  // No mail server is set.
  ...["startTrial", "createLicense", "rotateLicenseKey"].map((id) => `${id} send_key`),
  // A period, what rolls over and overage need a quota; the anchor needs a period, or a subscription.
  ...["setPolicyFeature", "assignLicenseFeature"].flatMap((id) =>
    ["reset_period", "reset_anchor", "rollover_max", "overage_max"].map((field) => `${id} ${field}`)
  ),
  "createLicense starts_at",
  "createLicense maintenance_expires_at",
  "checkoutFloatingLicense until",
  "updateLicense starts_at",
  "updateLicense expires_at",
  "updateLicense maintenance_expires_at",
  "renewLicense extend_by_days",
  "renewLicenseMaintenance extend_by_days",
  "createPolicy maintenance_days",
  "updatePolicy maintenance_days",
  "resetLicenseUsage add_credits",
  "createSubscription current_period_start",
  "createSubscription current_period_end",
  "createSubscription canceled_at",
  "updateSubscription current_period_start",
  "updateSubscription current_period_end",
  "updateSubscription canceled_at",
  "createOrder period_start",
  "createOrder period_end",
  "updateOrder period_start",
  "updateOrder period_end",
  "createCustomField enum_options",
  "updateCustomField enum_options",
  ...["License", "Customer"].flatMap((owner) =>
    ["integer_value", "boolean_value", "datetime_value", "enum_value", "clear"].map(
      (field) => `set${owner}CustomFieldValue ${field}`
    )
  ),
  "getCustomerSummary to",
  "getOverview to",
  "getOverview tz",
  "getUsageSummary to",
  "getUsageSummary tz"
])

const isRefusedFor = ({ error, status }: Answer, name: string): boolean =>
  (status === 400 || status === 422) &&
  ["INVALID_JSON", "INVALID_QUERY", "VALIDATION_ERROR"].includes(error.code ?? "") &&
  (error.details ?? [{ path: error.detail ?? "" }]).some(({ path }) => path === name || path.startsWith(`${name}[`))

interface Sent {
  readonly name: string
  readonly request: Request
}

/**
 * Sends each request and returns the names of those whose refusal names the field. Changes are sent one after another: whether
 * one is valid depends on those before it, because all are of one record.
 */
const refusedOf = Effect.fnUntraced(function* (operation: Operation, field: string, all: ReadonlyArray<Sent>) {
  const { ask } = yield* Conversation
  const concurrency = operation.method === "GET" ? 6 : 1
  const answers = yield* Effect.forEach(all, ({ request }) => ask(operation, request), { concurrency })
  return all.map(({ name }) => name).filter((_, index) => isRefusedFor(answers[index]!, field))
})

const shown = (value: unknown): string => {
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 30)}… (${text.length})` : text
}

layer(Subject, { timeout: "1 minute" })("At the documented limits", (it) => {
  for (const operation of withBody) {
    it.effect(`${operation.id} accepts the values of its body`, () =>
      Effect.gen(function* () {
        const fixture = yield* Shared
        const right = bodyOf(operation, fixture) as object
        const fields = Object.entries((resolved(operation.body!)["properties"] ?? {}) as Record<string, Json>)
        const refused: Array<string> = []
        for (const [field, schema] of fields) {
          if (inWords.has(`${operation.id} ${field}`)) continue
          const requests = allowedBy(schema).map((value) => ({
            name: `${field}: ${shown(value)}`,
            request: { ...requestOf(operation, fixture), body: { ...right, [field]: value } }
          }))
          refused.push(...(yield* refusedOf(operation, field, requests)))
        }
        assert.deepStrictEqual(refused, [], operation.id)
      })
    )
  }

  for (const operation of operations.filter(({ query }) => query.length > 0)) {
    it.effect(`${operation.id} accepts the values of its parameters and refuses those beyond them`, () =>
      Effect.gen(function* () {
        // The key of the shared license has been rotated.
        const fixture = operation.credential === "license key" ? yield* (yield* Fixtures).make : yield* Shared
        const refused: Array<string> = []
        for (const { name, schema } of operation.query) {
          const { [name]: _, ...others } = queryOf(operation, fixture)
          const sending = (value: unknown) => ({
            name: `${name}=${shown(value)}`,
            request: {
              ...requestOf(operation, fixture),
              query: `?${new URLSearchParams({ ...others, [name]: String(value) })}`
            }
          })
          const beyond = forbiddenBy(schema).map(sending)
          assert.deepStrictEqual(
            yield* refusedOf(operation, name, beyond),
            beyond.map(({ name }) => name),
            operation.id
          )
          if (inWords.has(`${operation.id} ${name}`) || name === "cursor") continue
          refused.push(...(yield* refusedOf(operation, name, allowedBy(schema).map(sending))))
        }
        assert.deepStrictEqual(refused, [], operation.id)
      })
    )
  }
})
