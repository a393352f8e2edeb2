/** Lives a life on one of the two ways, and gives all that can be seen of it. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Refusals } from "../../src/activities/Refusals.ts"
import { Validations } from "../../src/runtime/Validations.ts"
import { walk } from "./Activity.ts"
import { BothWays, type Face, unnumbered, type Way } from "./BothWays.ts"
import { issue } from "./Issued.ts"
import type { Life } from "./Lives.ts"
import type { Answer } from "./RawHttp.ts"
import { TestServer } from "./TestServer.ts"

export const live = Effect.fnUntraced(function* (way: Way, { given, policy, steps }: Life, index: number) {
  const { asked, faceOf, remember } = yield* BothWays
  const license = yield* issue(policy, given)
  yield* remember(license)
  const before = yield* counted
  const faces: Array<Face> = []
  const answers: Array<Answer> = []
  const outcomes: Array<string> = []
  for (const step of steps) {
    if (typeof step === "function") {
      yield* step(license)
      continue
    }
    const [operation, body] = step
    const sent = typeof body === "function" ? body(answers) : body
    const answer = yield* asked(operation === "offline" ? "general" : way, license.license_key, operation, sent, {
      "x-request-id": `life-${index}-${answers.length}-0001`
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
  const feed = (yield* walk({ license_id })).map(({ sequence: _, event_sequence: __, ...row }) => row)
  const validations = yield* sql`SELECT validations, refused FROM license_validations WHERE license_id = ${license_id}`
  assert.isNotEmpty(feed)
  return plain([...seen, feed, validations])
})

/** Codes of products and licenses' keys are of this license alone. */
const plain = (value: unknown): unknown =>
  JSON.parse(
    unnumbered(JSON.stringify(value, (name, member) => (own.has(name) ? "<own>" : member)))
      .replaceAll(/sha256:[0-9a-f]{12}/g, "sha256:?")
      .replaceAll(/issued-\d+/g, "issued-?")
  )

const own = new Set(["license_key_prefix", "license_key_last4", "sequence", "digest", "ledger_sequence"])
