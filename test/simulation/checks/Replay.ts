/**
 * Compares answers and records with the model. The events of a license give the order of its changes:
 * each is replayed on the model, which must give the same events, ledger rows and answers. An answer without an
 * event must be correct in one of the states that the license passed through meanwhile. The state after all events
 * must equal the rows. Where the events do not determine the state, all possible states are tried.
 */
import { isDeepStrictEqual } from "node:util"
import { dueTransitions, settled, transitionByTime } from "../model/Clock.ts"
import { type Answer, type License, type Policy, type Situation, statusAt } from "../model/Model.ts"
import { movedWith, toldOfEnd } from "../model/Periods.ts"
import { type Call, operations } from "../requests/Operations.ts"
import type { LicenseStep } from "./LicenseStep.ts"
import { adoptCuts, adoptQuiet, adoptTimes, asHeard, asPromised, backByClock, compare } from "./Reconcile.ts"
import type { StoredEvent } from "./Rows.ts"
import { brief, show, Violation, violation } from "./Violation.ts"

const isByClock = ({ request }: StoredEvent) => request === "req_none"

/** Groups the events of one command; an event made by time is a group by itself. */
const grouped = (events: ReadonlyArray<StoredEvent>): ReadonlyArray<ReadonlyArray<StoredEvent>> => {
  const groups: Array<Array<StoredEvent>> = []
  for (const event of events) {
    const last = groups.at(-1)
    if (last !== undefined && !isByClock(event) && last[0]!.request === event.request) last.push(event)
    else groups.push([event])
  }
  return groups
}

const anyTime = Number.POSITIVE_INFINITY

const byFeature = <A extends { readonly feature: string }>(entries: ReadonlyArray<A>) =>
  entries.toSorted((a, b) => (a.feature === b.feature ? 0 : a.feature < b.feature ? -1 : 1))

export class Replay {
  private readonly licenseStep: LicenseStep
  private readonly stored: License
  /** All possible states of the license now. */
  private current: ReadonlyArray<License>
  /** All possible states in this step. */
  private readonly states: Array<License>
  private readonly placed = new Set<string>()

  constructor(licenseStep: LicenseStep) {
    this.licenseStep = licenseStep
    this.current = [licenseStep.before]
    this.states = [licenseStep.before]
    this.stored = licenseStep.stored.licenses.get(licenseStep.before.id)!
  }

  /** Throws a violation if the step is impossible. */
  run(): void {
    const { before, calls, stored } = this.licenseStep
    const concerns = ({ license, type }: StoredEvent) => license === before.id || type === "subscription.updated"
    for (const group of grouped(stored.events.filter(concerns))) {
      if (group[0]!.type === "subscription.updated") this.moveSubscription(group[0]!)
      else if (isByClock(group[0]!)) this.moveOn(group[0]!)
      else this.pool(group)
    }
    this.go(this.current.map((license) => adoptQuiet(license, this.stored, this.situations([license]))))
    for (const call of calls) if (!this.placed.has(call.request)) this.justify(call)
    this.reconcile()
  }

  private go(next: ReadonlyArray<License>): void {
    this.current = next.filter((one, index) => next.findIndex((other) => isDeepStrictEqual(one, other)) === index)
    this.states.push(...this.current)
  }

  /** All situations in which a command can have been decided, no later than its event if it left one. */
  private *situations(
    states: ReadonlyArray<License>,
    nows = this.licenseStep.nows,
    upTo = anyTime
  ): Generator<Situation> {
    for (const { catalog, since } of this.licenseStep.periods.toReversed()) {
      if (since > upTo) continue
      for (const state of states) {
        const policy = catalog.policies.get(state.policy)!
        const heard = asHeard(state, this.stored)
        // A sweep at a node with a faster clock ends leases with their license before this node's clock reaches its end.
        const cut = this.licenseStep.nows.reduce(
          (license, at) => adoptCuts(license, this.stored, { license, policy, now: at }),
          heard
        )
        for (const license of cut === heard ? [state, heard] : [state, heard, cut]) {
          for (const now of nows) yield { license, catalog, policy, now }
        }
        for (const license of this.promised(heard, policy))
          for (const now of nows) yield { license, catalog, policy, now }
      }
    }
  }

  /** A license after requests of the step that left no event, before a later one gave it the due instants that are stored. */
  private promised(license: License, { require_heartbeat }: Policy): ReadonlyArray<License> {
    const { calls, nows, periods } = this.licenseStep
    if (!require_heartbeat) return []
    const policies = new Set(
      periods.flatMap(({ catalog }) => this.states.map(({ policy }) => catalog.policies.get(policy)!))
    )
    return Array.from(policies)
      .flatMap((policy) => nows.map((at) => asPromised(license, calls, policy, at)))
      .filter((promised) => promised !== license)
  }

  /** An edit of a subscription moves the periods of its licenses. Time may have passed between the edit and its event. */
  private moveSubscription({ resource, sequence }: StoredEvent): void {
    const { catalog } = this.licenseStep.periods.find(({ since }) => since === sequence)!
    const subscription = catalog.subscriptions.get(resource)!
    this.go(
      this.current.flatMap((license) => this.licenseStep.nows.map((now) => movedWith(license, subscription, now)))
    )
  }

  /** A transition by time: it must have been due, and occurs once. */
  private moveOn(event: StoredEvent): void {
    if (event.type === "license.expiring" || event.type.startsWith("license.maintenance_expir")) return
    const isOfFeature = event.type === "license.feature_expired" || event.type === "usage.period_closed"
    const subject = isOfFeature ? event.metadata["feature_id"] : event.resource
    const next: Array<License> = []
    for (const { license, policy, now } of this.situations(this.current, [event.at], event.sequence)) {
      const returned = { ...license, status: backByClock(license, statusAt(license, policy, now)) }
      for (const from of [license, returned]) {
        const moved = transitionByTime(from, policy, now, `${event.type} ${subject}`)
        if (moved !== undefined && isToldOf(event, from, now)) next.push(moved)
      }
    }
    if (next.length === 0)
      violation(`${event.type} of ${event.resource} was recorded and not due: ${show(event)} on ${show(this.current)}`)
    this.go(next)
  }

  /** A command's events: the model must give the same. */
  private pool(group: ReadonlyArray<StoredEvent>): void {
    const { at, request, sequence } = group[0]!
    const call = this.licenseStep.calls.find((one) => one.request === request)
    if (call === undefined) violation(`events of a request that was not made in this step: ${show(group)}`)
    if (this.placed.has(request)) violation(`${describe(call)} was done twice: ${show(group)}`)
    this.placed.add(request)
    if (!this.licenseStep.nows.includes(at)) violation(`an event of a time that was not: ${show(group)}`)
    const seen = new Set<string>()
    const next: Array<License> = []
    for (const situation of this.situations(this.current, [at], sequence)) {
      const answer = this.expected(call, situation)
      const wrong = unrecorded(situation) ?? this.mismatch(call, answer, group)
      if (wrong === undefined) next.push(answer.license)
      else seen.add(wrong)
    }
    if (next.length === 0) {
      const left = group.map(({ type }) => type)
      violation(`${describe(call)} left ${left} on ${show(this.current)}:\n  ${[...seen].join("\n  ")}`)
    }
    this.go(next)
  }

  private expected(call: Call, { license, ...rest }: Situation): Answer {
    return operations[call.operation].expected!(
      { ...rest, license: settled(license, rest.policy, rest.now) },
      call.command
    )
  }

  private mismatch(call: Call, answer: Answer, group: ReadonlyArray<StoredEvent>): string | undefined {
    const types = group.map(({ type }) => type)
    if (!isDeepStrictEqual(types, answer.events))
      return `the model leaves ${answer.events} (${answer.code ?? "accepted"})`
    const ledger = this.licenseStep.stored.ledger
      .filter(({ license, request }) => license === this.stored.id && request === call.request)
      .map(({ credits, overage, feature, action, amount, balance, max }) => ({
        ...{ feature, action, amount, balance, max },
        ...(credits === null ? undefined : { credits }),
        ...(overage === null ? undefined : { overage })
      }))
    // A move records its features by their codes, which may have changed.
    if (!isDeepStrictEqual(byFeature(ledger), byFeature(answer.ledger)))
      return `the ledger says ${show(ledger)}, the model ${show(answer.ledger)}`
    return this.misfit(call, answer)
  }

  /** How an outcome differs from the answer that the model expects. */
  private misfit(call: Call, answer: Answer): string | undefined {
    const outcome = this.licenseStep.outcomes.get(call.request)!
    if (outcome.kind === "unknown") return undefined
    if (outcome.kind === "refused") {
      return outcome.code === answer.code ? undefined : `refused with ${outcome.code}, the model says ${answer.code}`
    }
    if (answer.code !== undefined) return `accepted, the model refuses with ${answer.code}`
    const reply = (outcome.reply ?? {}) as { readonly [member: string]: unknown }
    const wrong = Object.entries(answer.reply).find(([member, value]) => !isDeepStrictEqual(reply[member], value))
    // An answer presents the license at the time of the answer, which may be later than the decision.
    if (wrong === undefined || (this.licenseStep.nows.length > 1 && "times_activated" in reply)) return undefined
    return `answered ${wrong[0]} ${show(reply[wrong[0]])}, the model says ${show(wrong[1])}`
  }

  /** An answer without an event must be correct in some state of the step. */
  private justify(call: Call): void {
    const outcome = this.licenseStep.outcomes.get(call.request)!
    if (outcome.kind === "unknown") return
    if (outcome.kind === "refused" && outcome.code === "NOT_READY" && this.licenseStep.isContended) return
    const seen = new Set<string>()
    for (const situation of this.situations(this.states)) {
      const answer = this.expected(call, situation)
      const wrong = answer.events.length > 0 ? `the model leaves ${answer.events}` : this.misfit(call, answer)
      if (wrong === undefined) return
      seen.add(wrong)
    }
    violation(
      `${describe(call)} was answered ${show(outcome)} and left nothing, on ${show(this.states)}:\n  ${[...seen].join("\n  ")}`
    )
  }

  /** One of the possible states must equal the rows. */
  private reconcile(): void {
    const failures = this.current.flatMap((license) => {
      try {
        compare(adoptTimes(license, this.stored, this.licenseStep, this.situations(this.states)), this.stored)
        return []
      } catch (error) {
        if (error instanceof Violation) return [error]
        throw error
      }
    })
    if (failures.length === this.current.length) throw failures[0]!
  }
}

/** Whether the event of a period's end says what the model says. The feature's code may have changed. */
const isToldOf = ({ metadata, type }: StoredEvent, { assignments }: License, now: number): boolean => {
  if (type !== "usage.period_closed") return true
  const { feature_code, request_id, ...told } = metadata
  const id = String(told["feature_id"])
  const { feature_code: _, ...expected } = toldOfEnd(id, undefined, assignments.get(id)!, now)
  return isDeepStrictEqual(told, expected)
}

/** A change to a license first records the transitions by time that are due. */
const unrecorded = ({ license, now, policy }: Situation): string | undefined => {
  const due = dueTransitions(license, policy, now)
  return due.length > 0 ? `not recorded: ${due}` : undefined
}

const describe = ({ command, node, request, operation }: Call): string =>
  `${request} (${operation} ${brief(command)} at node ${node})`
