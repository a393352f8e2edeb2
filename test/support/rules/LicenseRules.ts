/**
 * Runs license rules on plain records: the view that rules get, the records after a decision, and `perform`, which runs a command
 * as an actor does: first changes by time, then the rule, then its changes.
 */
import { assert } from "@effect/vitest"
import type { Code } from "../../../src/contract/api/ErrorCode.ts"
import { expiredFeatures } from "../../../src/licensing/model/FeatureExpiry.ts"
import type { Changes, LicenseView } from "../../../src/licensing/model/LicenseRecords.ts"
import { limitsOf } from "../../../src/licensing/model/Limits.ts"
import type { Refused, Rule } from "../../../src/licensing/rules/LicenseCommand.ts"
import { isOverdue, settle } from "../../../src/licensing/rules/Lifecycle.ts"
import { endedPeriods } from "../../../src/licensing/rules/UsagePeriods.ts"
import { isActiveContainer } from "../../../src/licensing/state/CommittedState.ts"
import { frozen, noon, productCode, type Rows } from "./Licenses.ts"
import { messageFault } from "./PlainWords.ts"

const liveLeases = ({ leases }: Rows) => leases.filter(({ status }) => status === "live")

/** The records as rules see them. */
export const viewOf = (rows: Rows): LicenseView =>
  frozen({
    license: rows.license,
    policy: rows.policy,
    limits: limitsOf(rows.license, rows.policy),
    productCode,
    assignments: rows.assignments.toSorted((a, b) => (a.feature_code < b.feature_code ? -1 : 1)),
    assignmentByCode: (code) => rows.assignments.find(({ feature_code }) => feature_code === code),
    expiredFeatures: (now) => expiredFeatures(rows.assignments, now),
    endedPeriods: (now) => endedPeriods(rows.assignments, now),
    reversalMark: (featureId, eventId) =>
      rows.ledger.findLast(
        ({ action, event_id, feature_id, reverses }) =>
          feature_id === featureId &&
          (action === "reset" ||
            action === "period_reset" ||
            reverses === eventId ||
            (action === "consume" && event_id === eventId))
      ),
    assignmentById: (id) => rows.assignments.find(({ feature_id }) => feature_id === id),
    device: ({ kind, key }) =>
      rows.devices.find(({ binding_kind, binding_key }) => binding_kind === kind && binding_key === key),
    deviceById: (wanted) => rows.devices.find(({ id }) => id === wanted),
    devices: rows.devices,
    activeContainers: rows.devices.filter(isActiveContainer).length,
    overdue: (now) => rows.devices.filter((device) => isOverdue(device, rows.license, rows.policy, now)),
    liveLeases: liveLeases(rows),
    liveLeaseCount: liveLeases(rows).length,
    liveLeaseOf: (deviceId) => liveLeases(rows).find(({ device_id }) => device_id === deviceId),
    lapsed: (now) => liveLeases(rows).filter(({ expires_at }) => expires_at <= now),
    leaseByToken: (hash) => rows.leases.find(({ token_hash }) => token_hash === hash),
    counted: (eventId) => {
      const entry = rows.ledger.find(({ event_id }) => event_id === eventId)
      const feature = rows.features.find(({ id }) => id === entry?.feature_id)
      return entry === undefined || feature === undefined
        ? undefined
        : { feature_code: feature.code, amount: entry.amount }
    },
    version: (version) => ({ enforced: Object.keys(rows.versions).length > 0, released_at: rows.versions[version] }),
    feature: (wanted) => rows.features.find(({ id }) => id === wanted),
    link: (kind, wanted) => rows.links.find((link) => link.kind === kind && link.id === wanted),
    targetPolicy: (wanted) => rows.targets.find(({ policy }) => policy.id === wanted),
    otherResettable: rows.otherResettable
  } satisfies LicenseView)

const upserted = <Row>(
  rows: ReadonlyArray<Row>,
  changed: ReadonlyArray<Row>,
  idOf: (row: Row) => string
): ReadonlyArray<Row> => Array.from(new Map([...rows, ...changed].map((row) => [idOf(row), row])).values())

/** The records after a decision. */
export const applied = (rows: Rows, changes: Changes): Rows => {
  const license = { ...rows.license, ...changes.license }
  const seen = changes.seen === undefined ? [] : [changes.seen]
  return frozen({
    ...rows,
    policy: changes.policy ?? rows.policy,
    license: { ...license, entitlement_counter: license.entitlement_counter + (changes.entitlement === true ? 1 : 0) },
    assignments: upserted(rows.assignments, changes.assignments ?? [], ({ feature_id }) => feature_id).filter(
      ({ feature_id }) => !changes.removedAssignments?.includes(feature_id)
    ),
    devices: upserted(rows.devices, [...(changes.devices ?? []), ...seen], ({ id }) => id),
    otherResettable: changes.othersReset === true ? 0 : rows.otherResettable,
    leases: upserted(rows.leases, changes.leases ?? [], ({ id }) => id),
    ledger: [...rows.ledger, ...(changes.ledger ?? [])],
    events: [...rows.events, ...(changes.events ?? [])]
  })
}

/** The records after all due changes by time. */
export const settled = (rows: Rows, now: number): Rows => applied(rows, settle(viewOf(rows), now) ?? {})

/** The result of a command: its changes and reply, or its refusal. */
export interface Performed<Reply, C extends Code> {
  /** The records on which the command was decided, after changes by time. */
  readonly before: Rows
  readonly after: Rows
  /** For a refused command only the events of the refusal. */
  readonly changes: Changes
  readonly refused: Refused<C> | undefined
  readonly reply: Reply | undefined
}

/** Runs one command as an actor does. */
export const perform = <Command, Reply, C extends Code>(
  rows: Rows,
  rule: Rule<Command, Reply, C>,
  command: Command,
  now: number
): Performed<Reply, C> => {
  const before = settled(rows, now)
  const outcome = rule.decide(viewOf(before), frozen(command), now)
  if (!outcome.accepted) assert.isUndefined(messageFault(outcome.message), outcome.message)
  const changes = outcome.accepted ? outcome.changes : (outcome.recorded ?? { events: [] })
  const after = applied(before, changes)
  return outcome.accepted
    ? { before, after, changes, refused: undefined, reply: outcome.reply(viewOf(after)) }
    : { before, after, changes, refused: outcome, reply: undefined }
}

/** Runs a command that must be accepted. */
export const allowed = <Command, Reply, C extends Code>(
  rows: Rows,
  rule: Rule<Command, Reply, C>,
  command: Command,
  now = noon
) => {
  const performed = perform(rows, rule, command, now)
  assert.isUndefined(performed.refused, `${rule.name} was refused: ${performed.refused?.code}`)
  return { ...performed, reply: performed.reply as Reply }
}

/** The records without what a refusal may record of itself. */
export const withoutRecord = (rows: Rows): Rows => ({
  ...rows,
  license: { ...rows.license, activation_limit_recorded_at: undefined },
  events: []
})

/** Runs a command that must be refused with this code and change nothing. */
export const refusedWith = <Command, Reply, C extends Code>(
  code: C,
  rows: Rows,
  rule: Rule<Command, Reply, C>,
  command: Command,
  now = noon
) => {
  const performed = perform(rows, rule, command, now)
  assert.strictEqual(performed.refused?.code, code, `${rule.name}`)
  assert.deepStrictEqual(withoutRecord(performed.after), withoutRecord(performed.before))
  return { ...performed, refused: performed.refused as Refused<C> }
}

/** The event types in order. A consumption's event is its ledger row and precedes the events that it causes. */
export const eventTypes = (changes: Changes | undefined): ReadonlyArray<string> => [
  ...(changes?.ledger ?? []).flatMap(({ action }) => (action === "consume" ? ["usage.consumed"] : [])),
  ...(changes?.events ?? []).map(({ event_type }) => event_type)
]
