/** The checks, fed histories of services that break their promises: each break is found, and a history that keeps them passes. */
import { assert, describe, it } from "@effect/vitest"
import { faultsOfPage } from "../load/FeedReader.ts"
import { type Attempt, type Call, longestGap, outcomeOf } from "../load/History.ts"
import { violationsOf } from "./Checks.ts"
import { withoutLost } from "./Losses.ts"
import type { EventRow, LedgerRow, LicenseRow, Rows } from "./Rows.ts"

const attempt = (requestId: string, status: number, rest: Partial<Attempt> = {}): Attempt => ({
  requestId,
  node: "node 1",
  sentAt: 0,
  ...(status > 0 && { answeredAt: 10 }),
  status,
  ...rest
})

const call = (rest: Partial<Call> & Pick<Call, "operation">): Call => ({
  client: 1,
  license: "lic",
  attempts: [],
  ...rest
})

const consume = (eventId: string, ...statuses: ReadonlyArray<number>) =>
  call({
    operation: "consume",
    eventId,
    amount: 2,
    attempts: statuses.map((status, index) => attempt(`${eventId}-${index}`, status))
  })

const consumed = (sequence: number, eventId: string, balance: number, rest: Partial<LedgerRow> = {}): LedgerRow => ({
  sequence,
  license_id: "lic",
  action: "consume",
  event_id: eventId,
  amount: 2,
  balance_after: balance,
  max_after: 100,
  request_id: `${eventId}-0`,
  ...rest
})

const event = (sequence: number, event_type: string, metadata: EventRow["metadata"] = {}, resource_id = "lic") => ({
  sequence,
  event_type,
  license_id: "lic",
  resource_id,
  metadata
})

const license: LicenseRow = {
  id: "lic",
  status: "active",
  active_device_count: 0,
  total_consumptions: 0,
  max_activations: null,
  max_floating_users: null,
  request: null,
  feature_consumed: 0,
  feature_max: 100
}

const nothing: Rows = {
  licenses: [license],
  devices: [],
  leases: [],
  ledger: [],
  events: [],
  from: { events: 0, ledger: 0 },
  to: { events: 0, ledger: 0 },
  counted: { events: 0, ledger: 0 },
  highest: { events: 0, ledger: 0 }
}

/** Rows whose numbers have no gaps. */
const rowsWith = (rest: Partial<Rows>): Rows => {
  const rows = { ...nothing, ...rest }
  const numbers = { events: rows.events.length, ledger: rows.ledger.length }
  return { ...rows, to: numbers, counted: numbers, highest: numbers, ...rest }
}

const counted = (total: number): Partial<LicenseRow> => ({ total_consumptions: total, feature_consumed: total })

/** One violation, which says this. */
const assertFound = (calls: ReadonlyArray<Call>, rows: Rows, wanted: RegExp) => {
  const found = violationsOf(calls, rows)
  assert.isTrue(
    found.some((one) => wanted.test(one)),
    found.join("\n") || "nothing was found"
  )
}

describe("consumptions", () => {
  const one = rowsWith({ licenses: [{ ...license, ...counted(2) }], ledger: [consumed(1, "a", 2)] })

  it("that are acknowledged, repeated or unknown, and counted once, are right", () => {
    assert.deepStrictEqual(violationsOf([consume("a", 200)], one), [])
    assert.deepStrictEqual(violationsOf([consume("a", 0, 503, 200), consume("a", 200)], one), [])
    assert.deepStrictEqual(violationsOf([consume("a", 0)], one), [])
    assert.deepStrictEqual(violationsOf([consume("a", 503), consume("b", 403)], one), [])
    assert.deepStrictEqual(violationsOf([consume("a", 0)], nothing), [])
  })

  it("that are acknowledged and lost are found", () => {
    assertFound([consume("a", 200)], nothing, /a is acknowledged and counted 0 times/)
    assertFound([consume("a", 0, 200)], nothing, /a is acknowledged and counted 0 times/)
  })

  it("that are counted twice are found, also if their outcome is unknown", () => {
    const twice = rowsWith({
      licenses: [{ ...license, ...counted(4) }],
      ledger: [consumed(1, "a", 2), consumed(2, "a", 4)]
    })
    assertFound([consume("a", 200), consume("a", 200)], twice, /counted 2 times/)
    assertFound([consume("a", 0, 503)], twice, /counted 2 times/)
  })

  it("that are refused, or that nobody asked for, and counted are found", () => {
    assertFound([consume("a", 403)], one, /a is refused and counted 1 times/)
    assertFound([], one, /nobody asked/)
  })

  it("with another amount, a wrong balance or beyond their quota are found", () => {
    const ledger = (row: Partial<LedgerRow>, total: number) =>
      rowsWith({ licenses: [{ ...license, ...counted(total) }], ledger: [consumed(1, "a", total, row)] })
    assertFound([consume("a", 200)], ledger({ amount: 3 }, 3), /of 2 is counted with 3/)
    assertFound([consume("a", 200)], ledger({}, 4), /leaves 4/)
    assertFound([consume("a", 200)], ledger({ max_after: 1 }, 2), /2 of 1 are used/)
  })

  it("that differ from the counters are found", () => {
    const wrong = (row: Partial<LicenseRow>) => ({ ...one, licenses: [{ ...license, ...counted(2), ...row }] })
    assertFound([consume("a", 200)], wrong({ total_consumptions: 4 }), /ledger's sum: 4 and 2/)
    assertFound([consume("a", 200)], wrong({ feature_consumed: 0 }), /last balance: 0 and 2/)
  })
})

describe("changes with an Idempotency-Key", () => {
  const create = (...statuses: ReadonlyArray<number>) =>
    call({
      operation: "create",
      license: "",
      key: "k",
      attempts: statuses.map((status, index) => attempt(`k-${index}`, status))
    })
  const createdBy = (index: number) => event(index + 1, "license.created", { request_id: `k-${index}` })
  const made = (...attempts: ReadonlyArray<number>) =>
    rowsWith({
      licenses: attempts.map((index) => ({ ...license, id: `new-${index}`, request: "k" })),
      events: attempts.map(createdBy)
    })

  it("that are made once are right", () => {
    assert.deepStrictEqual(violationsOf([create(0, 201)], made(0)), [])
    assert.deepStrictEqual(violationsOf([create(0)], made()), [])
  })

  it("that are lost, made twice or refused and made are found", () => {
    assertFound([create(201)], made(), /k is acknowledged and exists 0 times/)
    assertFound([create(0, 201)], made(0, 1), /k is acknowledged and exists 2 times/)
    assertFound([create(0, 201)], made(0, 1), /has 2 events/)
    assertFound([create(422)], made(0), /k is refused and exists 1 times/)
  })

  it("whose first request still runs are unknown", () => {
    const running = create()
    running.attempts.push(attempt("k-0", 0), attempt("k-1", 409, { code: "IDEMPOTENCY_IN_PROGRESS" }))
    assert.strictEqual(outcomeOf(running), "unknown")
  })
})

describe("devices", () => {
  const onMachine = (operation: "activate" | "deactivate", status: number) =>
    call({ operation, fingerprint: "m", attempts: [attempt(`${operation}-${status}`, status)] })
  const device = (holds_slot: boolean) => ({ license_id: "lic", fingerprint: "m", status: "active", holds_slot })
  const activated = rowsWith({
    licenses: [{ ...license, active_device_count: 1 }],
    devices: [device(true)],
    events: [event(1, "license.activated", { request_id: "activate-200" })]
  })

  it("are as the last acknowledged call left them", () => {
    assert.deepStrictEqual(violationsOf([onMachine("activate", 200)], activated), [])
    assertFound([onMachine("activate", 200)], nothing, /does not exist/)
    assertFound(
      [onMachine("activate", 200), onMachine("deactivate", 200)],
      activated,
      /deactivate, and it holds a slot/
    )
    assertFound([onMachine("activate", 403)], activated, /activate activate-403|holds a slot/)
  })

  it("never hold more slots than the limit of their time", () => {
    const events = (limit: number) => [
      event(1, "license.updated", { changes: { max_activations: { new: limit } } }),
      event(2, "license.activated"),
      event(3, "license.activated")
    ]
    const devices = ["m", "n"].map((fingerprint) => ({ ...device(true), fingerprint }))
    const rows = (limit: number) =>
      rowsWith({ licenses: [{ ...license, active_device_count: 2 }], devices, events: events(limit) })
    assert.deepStrictEqual(violationsOf([], rows(2)), [])
    assertFound([], rows(1), /event 3: 2 activations of 1/)
  })
})

describe("seats", () => {
  const lease = (id: string, status: string) => ({ id, license_id: "lic", token_hash: `hash of ${id}`, status })
  const checkout = (id: string) =>
    call({ operation: "checkout", attempts: [attempt(`out-${id}`, 200, { tokenHash: `hash of ${id}` })] })
  const checkin = (id: string) =>
    call({ operation: "checkin", tokenHash: `hash of ${id}`, attempts: [attempt(`in-${id}`, 200)] })
  const out = (sequence: number, id: string, superseded?: string) =>
    event(sequence, "lease.checked_out", superseded === undefined ? {} : { superseded }, id)

  it("that are taken, superseded and given back are right", () => {
    const events = [out(1, "a"), out(2, "b", "a"), event(3, "lease.checked_in", {}, "b")]
    const rows = rowsWith({ leases: [lease("a", "superseded"), lease("b", "checked_in")], events })
    assert.deepStrictEqual(violationsOf([checkout("a"), checkout("b"), checkin("b")], rows), [])
  })

  it("that are lost or stay taken are found", () => {
    assertFound([checkout("a")], nothing, /is acknowledged and exists 0 times/)
    const rows = rowsWith({ leases: [lease("a", "live")], events: [out(1, "a")] })
    assertFound([checkout("a"), checkin("a")], rows, /given back, and is live/)
  })

  it("beyond the limit, or while the license is suspended, are found", () => {
    const seats = ["a", "b", "c", "d", "e"]
    const rows = rowsWith({
      leases: seats.map((id) => lease(id, "live")),
      events: seats.map((id, index) => out(index + 1, id))
    })
    assertFound([], rows, /event 5: 5 seats of 4/)
    const suspended = rowsWith({
      licenses: [{ ...license, status: "suspended" }],
      leases: [lease("a", "live")],
      events: [event(1, "license.suspended"), out(2, "a")]
    })
    assertFound([], suspended, /checked_out while suspended/)
  })
})

describe("a failover to a standby that lags", () => {
  const at = (sentAt: number, answeredAt: number) => {
    const made = consume("a", 200)
    return { ...made, attempts: made.attempts.map((one) => ({ ...one, sentAt, answeredAt })) }
  }
  const told = (made: Call) => violationsOf(withoutLost([made], [{ from: 100, until: 200, events: 0 }]), nothing)

  it("loses what was acknowledged while the standby received nothing, and nothing else", () => {
    assert.deepStrictEqual(told(at(90, 110)), [])
    assert.deepStrictEqual(told(at(150, 210)), [])
    assert.isNotEmpty(told(at(90, 99)))
    assert.isNotEmpty(told(at(200, 210)))
  })
})

describe("numbers and versions", () => {
  it("with a gap, a repeat or a wrong counter are found", () => {
    const numbers = (rest: Partial<Rows>) => rowsWith({ ...rest })
    assertFound([], numbers({ to: { events: 2, ledger: 0 }, counted: { events: 1, ledger: 0 } }), /events: 1 rows/)
    assertFound([], numbers({ highest: { events: 0, ledger: 3 } }), /ledger: the highest number is 3/)
  })

  it("of a feed with a gap, or one that goes back, are found", () => {
    assert.deepStrictEqual(faultsOfPage([5, 4, 3], 4), [])
    assert.isNotEmpty(faultsOfPage([5, 3], 0))
    assert.isNotEmpty(faultsOfPage([5, 4], 6))
  })

  it("that fall for a caller who asks later are found", () => {
    const answer = (requestId: string, sentAt: number, version: number) =>
      attempt(requestId, 200, { sentAt, answeredAt: sentAt + 10, version })
    const told = (requestId: string, sentAt: number, version: number) =>
      call({ operation: "validate", attempts: [answer(requestId, sentAt, version)] })
    assert.deepStrictEqual(violationsOf([told("a", 0, 2), told("b", 5, 1)], nothing), [])
    assertFound([told("a", 0, 2), told("b", 11, 1)], nothing, /b: entitlement_version 1 of lic after 2/)
    const repeated = call({ operation: "suspend", key: "k", attempts: [attempt("c", 503, {}), answer("d", 11, 1)] })
    assert.notInclude(violationsOf([told("a", 0, 2), repeated], nothing).join(), "entitlement_version")
  })

  it("of a gap are the longest time without an acknowledged answer", () => {
    const at = (answeredAt: number, status = 200) =>
      call({ operation: "validate", attempts: [attempt(String(answeredAt), status, { answeredAt })] })
    assert.strictEqual(longestGap([at(0), at(400), at(450, 503), at(900), at(950)]), 500)
  })
})
