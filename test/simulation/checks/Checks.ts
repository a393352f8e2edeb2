/** Invariants of the rows after every step, and of the answers over time. */
import { isDeepStrictEqual } from "node:util"
import type { ConsumeCommand } from "../../../src/licensing/rules/Consumption.ts"
import { bindingKey } from "../../../src/licensing/state/CommittedState.ts"
import type { License } from "../model/Model.ts"
import { liveLeases } from "../model/Model.ts"
import { addressOf } from "../nodes/Cluster.ts"
import { unknownLicense } from "../requests/InitialData.ts"
import type { Call } from "../requests/Operations.ts"
import type { Outcome } from "../requests/Outcome.ts"
import type { Step } from "../Transcript.ts"
import { Ledger } from "./Ledger.ts"
import type { Stored, StoredUsage } from "./Rows.ts"
import { by, hold, show, violation } from "./Violation.ts"

const sum = (numbers: Iterable<number>): number => Array.from(numbers).reduce((all, one) => all + one, 0)

const checkLicense = (license: License): void => {
  const { active, counted, devices, id, leases, total } = license
  const slots = Array.from(devices.values()).filter(({ slot }) => slot)
  hold(`${id}: active_device_count and slots`, active, slots.length)
  for (const device of slots) hold(`${id}: the state of ${device.id}, which holds a slot`, device.status, "active")
  const seats = liveLeases(license).map(([, { device }]) => device)
  hold(`${id}: live leases and the devices that hold them`, seats.length, new Set(seats).size)
  for (const { status, slot, id: device } of devices.values()) {
    if (status === "active" && !slot && !seats.includes(device)) violation(`${device} is active for nothing`)
  }
  for (const { device } of leases.values()) {
    if (!Array.from(devices.values(), (one) => one.id).includes(device)) violation(`a lease of no device of ${id}`)
  }
  const consumptions = Array.from(counted.values()).filter(({ reverses }) => reverses === null)
  hold(`${id}: total_consumptions and its ledger`, total, sum(consumptions.map(({ amount }) => amount)))
}

/**
 * Events and ledger rows agree with their counters, and each event has a delivery to the endpoint that subscribes to all. The
 * states and counts that are stored beside the licenses agree with them.
 */
const checkTotals = ({ totals }: Stored): void => {
  const events = totals["events"]
  for (const what of ["event counter", "last event", "what is an event", "numbers of events", "deliveries"])
    hold(`events and ${what}`, events, totals[what])
  for (const what of ["ledger counter", "last ledger row"])
    hold(`ledger rows and ${what}`, totals["ledger rows"], totals[what])
  for (const what of ["license states", "license states that agree"])
    hold(`licenses and ${what}`, totals["licenses"], totals[what])
}

/**
 * A row of the ledger is an event if and only if it is a consumption. Events are in the order of the ledger and equal their
 * requests. The database derives the event from the row; here it is derived from the request.
 */
const checkConsumptions = ({ events, ledger, licenses }: Stored, calls: ReadonlyArray<Call>): void => {
  const shown = new Map(events.filter(({ type }) => type === "usage.consumed").map((event) => [event.sequence, event]))
  const used = ledger.filter(({ action }) => action === "consume")
  hold("rows of the ledger that are events and are no consumptions", ledger.filter(isEvent).length, used.length)
  hold("consumptions and their events", used.length, shown.size)
  let before = 0
  for (const row of used) {
    const event = shown.get(row.event!)
    const call = calls.find(({ request }) => request === row.request)
    if (event === undefined || call === undefined) throw unknown(row)
    if (event.sequence <= before) violation(`${show(row)} comes before the event of a row ahead of it`)
    before = event.sequence
    const { amount, binding, event_id, feature_code } = call.command as ConsumeCommand
    const metadata = {
      feature_id: row.feature,
      feature_code,
      amount,
      event_id,
      balance_after: row.balance,
      ...(row.max === null ? {} : { max_after: row.max }),
      device_id: licenses.get(call.subject)!.devices.get(bindingKey(binding))!.id,
      request_id: call.request
    }
    const of = {
      license: call.subject,
      actor: `license ${call.subject}`,
      address: addressOf(call) ?? null,
      metadata
    }
    const is = { license: event.license, actor: event.actor, address: event.address, metadata: event.metadata }
    if (!isDeepStrictEqual(is, of)) violation(`the event of a consumption is ${show(is)}, asked for was ${show(of)}`)
  }
}

const unknown = (row: StoredUsage): never => violation(`nothing is known of ${show(row)}`)

const isEvent = ({ event }: StoredUsage): boolean => event !== null

/** A transaction that changes what decisions depend on gives the license one new revision, which it never had before. */
const checkFence = ({ repeated, unfenced }: Stored): void => {
  if (unfenced.length > 0) violation(`transactions that give no revision, or too many: ${unfenced.join("; ")}`)
  if (repeated.length > 0) violation(`resources that had a revision twice: ${repeated.join(", ")}`)
}

/** A request for an unknown license is refused with NOT_FOUND and changes nothing. */
export const checkStray = ({ calls, outcomes }: Step, { events, ledger }: Stored): void => {
  for (const { request } of calls.filter(({ subject }) => subject === unknownLicense)) {
    const outcome = outcomes.get(request)!
    if (outcome.kind === "accepted" || (outcome.kind === "refused" && outcome.code !== "NOT_FOUND"))
      violation(`${request} was answered ${show(outcome)}, and there is no such license`)
  }
  if ([...events, ...ledger].some(({ license }) => license === unknownLicense))
    violation(`${unknownLicense} was changed`)
}

/** The answers that later ones must agree with. */
export class Memory {
  private readonly versions = new Map<string, Array<{ readonly version: number; readonly at: number }>>()
  private readonly consumed = new Map<string, number | string>()
  private ledger = new Ledger()
  private readonly counters = new Map<string, number>()
  private readonly notices = new Map<string, ReadonlyArray<string>>()
  private sequence = { event: 0, usage: 0 }

  /** What is known so far, for a failover that comes back to it. */
  copy(): Memory {
    const { ledger, ...rest } = this
    return Object.assign(new Memory(), structuredClone(rest), { ledger: ledger.copy() })
  }

  /** The last sequence numbers that were read. */
  get last() {
    return this.sequence
  }

  check(stored: Stored, { nows, calls, outcomes }: Pick<Step, "nows" | "calls" | "outcomes">): void {
    by("sequences", () => {
      checkTotals(stored)
      this.checkSequences(stored)
    })
    by("consumptions", () => checkConsumptions(stored, calls))
    by("fence", () => checkFence(stored))
    by("notices", () => this.checkNotices(stored))
    by("counters", () => {
      for (const license of stored.licenses.values()) checkLicense(license)
    })
    by("versions", () => {
      this.checkVersions(calls, outcomes, nows)
      this.checkCounters(stored)
    })
    by("ledger", () => {
      this.ledger.check(stored)
      this.checkUsage(stored, calls, outcomes)
    })
    by("kept answers", () => this.checkKept(stored, calls, outcomes))
  }

  /** Each notice ahead of expiry is given once, until the license is edited. */
  private checkNotices({ events }: Stored): void {
    for (const { metadata, resource, type } of events) {
      if (
        ["license.updated", "license.renewed", "license.maintenance_renewed", "license.policy_changed"].includes(type)
      )
        this.notices.delete(resource)
      if (type !== "license.expiring" && !type.startsWith("license.maintenance_expir")) continue
      const given = this.notices.get(resource) ?? []
      const notice = `${metadata["days_before"]} days before ${metadata["expires_at"] ?? metadata["maintenance_expires_at"]}`
      if (given.includes(notice)) violation(`the notice ${notice} of ${resource} was given twice`)
      this.notices.set(resource, [...given, notice])
    }
  }

  private checkSequences({ events, ledger }: Stored): void {
    for (const [index, { sequence }] of events.entries())
      hold("the next event", sequence, this.sequence.event + index + 1)
    for (const [index, { sequence }] of ledger.entries())
      hold("the next ledger row", sequence, this.sequence.usage + index + 1)
    this.sequence = { event: this.sequence.event + events.length, usage: this.sequence.usage + ledger.length }
  }

  /**
   * Requests of one step are concurrent: each is compared with answers from before the step whose clock was not later. A version
   * counts transitions by time, which a clock that steps back reverts.
   */
  private checkVersions(
    calls: ReadonlyArray<Call>,
    outcomes: ReadonlyMap<string, Outcome>,
    nows: ReadonlyArray<number>
  ): void {
    const seen = calls.flatMap(({ request, subject }) => {
      const outcome = outcomes.get(request)!
      const version =
        outcome.kind === "accepted"
          ? (outcome.reply as { entitlement_version?: number })?.entitlement_version
          : undefined
      return version === undefined ? [] : [[subject, version] as const]
    })
    for (const [license, version] of seen) {
      const earlier = (this.versions.get(license) ?? []).filter(({ at }) => at <= Math.min(...nows))
      const before = Math.max(0, ...earlier.map(({ version }) => version))
      if (version < before) violation(`entitlement_version of ${license} fell from ${before} to ${version}`)
    }
    const at = Math.max(...nows)
    for (const [license, version] of seen) {
      // A later answer matters only if its version is higher.
      const others = (this.versions.get(license) ?? []).filter((one) => one.at < at || one.version > version)
      this.versions.set(license, [...others, { version, at }])
    }
  }

  /** Neither the counter of a policy nor the sum of it and a license's, which is published, ever decreases. */
  private checkCounters({ catalog, licenses }: Stored): void {
    const published = Array.from(licenses.values(), ({ id, policy, version }) => ({
      id,
      version: version + catalog.policies.get(policy)!.version
    }))
    for (const { id, version } of [...published, ...catalog.policies.values()]) {
      const before = this.counters.get(id) ?? 0
      if (version < before) violation(`the entitlement counter of ${id} fell from ${before} to ${version}`)
      this.counters.set(id, version)
    }
  }

  /** Every acknowledged consumption and reversal is in the ledger, each event id once. */
  private checkUsage(stored: Stored, calls: ReadonlyArray<Call>, outcomes: ReadonlyMap<string, Outcome>): void {
    for (const { command, request, subject, operation } of calls) {
      if ((operation !== "consume" && operation !== "take back") || outcomes.get(request)!.kind !== "accepted") continue
      const { amount, event_id, reverses } = command as ConsumeCommand
      this.consumed.set(`${subject} ${event_id}`, reverses ?? amount)
    }
    for (const [use, asked] of this.consumed) {
      const [license, eventId] = use.split(" ") as [string, string]
      const found = stored.licenses.get(license)!.counted.get(eventId)
      hold(`${eventId}, acknowledged and in the ledger`, asked, found?.reverses ?? found?.amount)
    }
  }

  /** A change with an Idempotency-Key is stored together with its answer, once per key. */
  private checkKept(stored: Stored, calls: ReadonlyArray<Call>, outcomes: ReadonlyMap<string, Outcome>): void {
    const changed = new Set(stored.events.map(({ request }) => request))
    for (const { request, scope } of calls) {
      const isRefused = outcomes.get(request)!.kind === "refused"
      if (scope === undefined || isRefused || !changed.has(request)) continue
      const limited = stored.events.some((event) => event.request === request && event.type.endsWith("limit_reached"))
      if (!stored.kept.has(scope) && !limited) violation(`the change of ${request} stands without its answer`)
      if (this.changedScopes.has(scope)) violation(`two changes under the key ${scope}`)
      this.changedScopes.add(scope)
    }
  }

  private readonly changedScopes = new Set<string>()
}
