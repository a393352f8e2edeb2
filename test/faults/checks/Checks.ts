/**
 * Compares what callers were told with the database: acknowledged means once, refused means absent, unknown means at most once.
 * Pure: unit tests feed it histories of services that are broken.
 */
import { type Call, isAcknowledged, type Operation, type Outcome, outcomeOf } from "../load/History.ts"
import { replayed } from "./Replay.ts"
import type { EventRow, LicenseRow, Rows } from "./Rows.ts"

export const violationsOf = (calls: ReadonlyArray<Call>, rows: Rows): ReadonlyArray<string> => [
  ...consumptions(calls, rows),
  ...creations(calls, rows),
  ...eventsOfCalls(calls, rows),
  ...devices(calls, rows),
  ...leases(calls, rows),
  ...versions(calls),
  ...sequences(rows),
  ...rows.licenses.flatMap((license) => [...counters(license, rows), ...replayed(license, rows)])
]

/** How often something is there that calls with this outcome asked for. */
const expected: Record<Outcome, (found: number) => boolean> = {
  acknowledged: (found) => found === 1,
  refused: (found) => found === 0,
  unknown: (found) => found <= 1
}

/** Of several calls for the same: once acknowledged is acknowledged, and all must be refused to be refused. */
const jointOutcome = (calls: ReadonlyArray<Call>): Outcome => {
  const outcomes = calls.map(outcomeOf)
  if (outcomes.includes("acknowledged")) return "acknowledged"
  return outcomes.includes("unknown") ? "unknown" : "refused"
}

const consumptions = (calls: ReadonlyArray<Call>, { ledger }: Rows): ReadonlyArray<string> => {
  const counted = Map.groupBy(
    ledger.filter(({ action }) => action === "consume"),
    ({ event_id, license_id }) => `${license_id} ${event_id}`
  )
  const asked = Map.groupBy(
    calls.filter(({ operation }) => operation === "consume"),
    ({ eventId, license }) => `${license} ${eventId}`
  )
  const wrong = [...asked].flatMap(([name, same]) => {
    const found = counted.get(name) ?? []
    const outcome = jointOutcome(same)
    if (!expected[outcome](found.length)) return [`consumption ${name} is ${outcome} and counted ${found.length} times`]
    const amounts = found.filter(({ amount }) => amount !== same[0]?.amount)
    return amounts.map(({ amount }) => `consumption ${name} of ${same[0]?.amount} is counted with ${amount}`)
  })
  const unasked = [...counted.keys()].filter((name) => !asked.has(name))
  return [...wrong, ...unasked.map((name) => `consumption ${name} is counted, and nobody asked for it`)]
}

const creations = (calls: ReadonlyArray<Call>, { licenses }: Rows): ReadonlyArray<string> =>
  calls
    .filter(({ operation }) => operation === "create")
    .flatMap((call) => {
      const found = licenses.filter(({ request }) => request === call.key).length
      const outcome = outcomeOf(call)
      return expected[outcome](found) ? [] : [`license of ${call.key} is ${outcome} and exists ${found} times`]
    })

/** The event of a change; and whether each acknowledged call makes one. */
const eventTypes: Partial<Record<Operation, { readonly type: string; readonly always?: boolean }>> = {
  activate: { type: "license.activated" },
  deactivate: { type: "license.deactivated" },
  consume: { type: "usage.consumed" },
  checkout: { type: "lease.checked_out" },
  checkin: { type: "lease.checked_in" },
  create: { type: "license.created", always: true },
  suspend: { type: "license.suspended" },
  reinstate: { type: "license.reinstated" },
  reset: { type: "license.usage_reset", always: true },
  limits: { type: "license.updated", always: true }
}

/** Runtime calls are repeated by what they name, so only those with a key make one event whatever lies between. */
const eventsOfCalls = (calls: ReadonlyArray<Call>, { events }: Rows): ReadonlyArray<string> => {
  const byRequest = Map.groupBy(events, ({ metadata }) => metadata.request_id)
  return calls.flatMap((call) => {
    const { always, type } = eventTypes[call.operation] ?? {}
    if (type === undefined) return []
    const ofAttempt = call.attempts.map(({ requestId }) => made(byRequest.get(requestId), type))
    const twice = call.attempts.filter((_, index) => (ofAttempt[index] ?? 0) > 1)
    const found = ofAttempt.reduce((sum, count) => sum + count, 0)
    const outcome = outcomeOf(call)
    const what = `${call.operation} ${call.key ?? call.attempts[0]?.requestId} is ${outcome} and has ${found} events`
    if (twice.length > 0) return [what]
    if (outcome === "refused") return found === 0 ? [] : [what]
    if (call.key === undefined) return []
    return found > 1 || (always === true && outcome === "acknowledged" && found === 0) ? [what] : []
  })
}

const made = (events: ReadonlyArray<EventRow> | undefined, type: string) =>
  events?.filter(({ event_type }) => event_type === type).length ?? 0

/** Each machine belongs to one client, which waits for each answer: without an unknown call its last answer holds. */
const devices = (calls: ReadonlyArray<Call>, rows: Rows): ReadonlyArray<string> => {
  const changes = calls.filter(({ operation }) => operation === "activate" || operation === "deactivate")
  const byMachine = Map.groupBy(changes, ({ fingerprint, license }) => `${license} ${fingerprint}`)
  return [...byMachine].flatMap(([name, own]) => {
    const found = rows.devices.filter((row) => `${row.license_id} ${row.fingerprint}` === name)
    if (found.length > 1) return [`device ${name} exists ${found.length} times`]
    const wasAcknowledged = own.some((call) => outcomeOf(call) === "acknowledged")
    if (wasAcknowledged && found.length === 0) return [`device ${name} is acknowledged and does not exist`]
    if (own.some(({ attempts }) => attempts.some(({ status }) => status === 0 || status >= 500))) return []
    const last = own.findLast((call) => outcomeOf(call) === "acknowledged")
    const holds = found[0]?.holds_slot ?? false
    return holds === (last?.operation === "activate")
      ? []
      : [`device ${name}: the last acknowledged call is ${last?.operation}, and it holds ${holds ? "a" : "no"} slot`]
  })
}

const leases = (calls: ReadonlyArray<Call>, rows: Rows): ReadonlyArray<string> => {
  const byToken = Map.groupBy(rows.leases, ({ token_hash }) => token_hash)
  const givenBack = new Set(
    calls
      .filter((call) => call.operation === "checkin" && outcomeOf(call) === "acknowledged")
      .map(({ tokenHash }) => tokenHash)
  )
  const tokens = calls
    .filter(({ operation }) => operation === "checkout")
    .flatMap(({ attempts }) => attempts.filter(isAcknowledged).map(({ tokenHash }) => tokenHash ?? ""))
  return tokens.flatMap((token) => {
    const found = byToken.get(token) ?? []
    if (found.length !== 1) return [`lease ${token.slice(0, 8)} is acknowledged and exists ${found.length} times`]
    return givenBack.has(token) && found[0]?.status === "live"
      ? [`lease ${found[0].id} was acknowledged as given back, and is live`]
      : []
  })
}

/** No caller receives a lower entitlement_version than one that was received before it asked. */
const versions = (calls: ReadonlyArray<Call>): ReadonlyArray<string> => {
  const told = calls.flatMap(({ attempts, key, license }) =>
    attempts
      // The repeat of a change may be answered with the stored answer of the first attempt.
      .filter(({ version }, index) => version !== undefined && (key === undefined || index === 0))
      .map((attempt) => ({ ...attempt, license }))
  )
  return [...Map.groupBy(told, ({ license }) => license)].flatMap(([license, answers]) => {
    const received = answers.toSorted((a, b) => (a.answeredAt ?? 0) - (b.answeredAt ?? 0))
    const found: Array<string> = []
    let [next, highest] = [0, 0]
    for (const { requestId, sentAt, version = 0 } of answers.toSorted((a, b) => a.sentAt - b.sentAt)) {
      while ((received[next]?.answeredAt ?? sentAt) < sentAt)
        highest = Math.max(highest, received[next++]?.version ?? 0)
      if (version < highest)
        found.push(`${requestId}: entitlement_version ${version} of ${license} after ${highest} was told`)
    }
    return found
  })
}

const sequences = ({ counted, from, highest, to }: Rows): ReadonlyArray<string> =>
  (["events", "ledger"] as const).flatMap((name) => [
    ...(counted[name] === to[name] - from[name]
      ? []
      : [`${name}: ${counted[name]} rows for the numbers above ${from[name]} up to ${to[name]}`]),
    ...(highest[name] === to[name] ? [] : [`${name}: the highest number is ${highest[name]}, the counter ${to[name]}`])
  ])

const counters = (license: LicenseRow, rows: Rows): ReadonlyArray<string> => {
  const ledger = rows.ledger.filter(({ license_id }) => license_id === license.id)
  const consumed = ledger.filter(({ action }) => action === "consume").reduce((sum, { amount }) => sum + amount, 0)
  const slots = rows.devices.filter(({ holds_slot, license_id }) => license_id === license.id && holds_slot).length
  const last = ledger.at(-1)
  const pairs: ReadonlyArray<readonly [string, number, number]> = [
    ["total_consumptions and the ledger's sum", license.total_consumptions, consumed],
    ["active_device_count and the devices with a slot", license.active_device_count, slots],
    ["the feature's count and the last balance", license.feature_consumed ?? 0, last?.balance_after ?? 0]
  ]
  return pairs.flatMap(([what, one, other]) => (one === other ? [] : [`${license.id}: ${what}: ${one} and ${other}`]))
}
