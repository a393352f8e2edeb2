/**
 * Holds what callers were told and what was recorded against the model. The events of a license are the order in which it was
 * changed: each is replayed on the model, which must come to the same events, ledger rows and answers. An answer that left no
 * event must be right in one of the states that the license went through meanwhile; and what the events have made of the
 * license must be what its rows say.
 */
import { isDeepStrictEqual } from "node:util"
import type { Outcome } from "./Outcome.ts"
import type { Answer, License, Situation, Surroundings } from "./model/Model.ts"
import { clockStatus, dueMoves, endLease, isCut, moveByTime, replaced, settled } from "./model/Model.ts"
import { leaseEnd } from "./model/Runtime.ts"
import type { Stored, StoredEvent } from "./Rows.ts"
import { type Order, verbs } from "./Verbs.ts"
import { told, violation } from "./Violation.ts"

/** One license in one step: what was asked and answered, and what there is to read of it. */
export interface Episode {
  readonly before: License
  readonly stored: Stored
  /** All that held at some time in the step, in order. */
  readonly surroundings: ReadonlyArray<Surroundings>
  /** All that the clock showed in the step. */
  readonly nows: ReadonlyArray<number>
  readonly orders: ReadonlyArray<Order>
  readonly outcomes: ReadonlyMap<string, Outcome>
  /** Whether an order may have been refused for want of a quiet moment. */
  readonly isContended: boolean
}

const isByClock = ({ request }: StoredEvent) => request === "req_none"

/** Events of one command, which stand together; those that time has made stand alone. */
const grouped = (events: ReadonlyArray<StoredEvent>): ReadonlyArray<ReadonlyArray<StoredEvent>> => {
  const groups: Array<Array<StoredEvent>> = []
  for (const event of events) {
    const last = groups.at(-1)
    if (last !== undefined && !isByClock(event) && last[0]!.request === event.request) last.push(event)
    else groups.push([event])
  }
  return groups
}

export class Replay {
  private readonly episode: Episode
  private readonly stored: License
  private state: License
  /** Every state that the license went through. */
  private readonly states: Array<License>
  private readonly placed = new Set<string>()

  constructor(episode: Episode) {
    this.episode = episode
    this.state = episode.before
    this.states = [episode.before]
    this.stored = episode.stored.licenses.get(episode.before.id)!
  }

  /** The license as it is now, by the model; a violation where that can not be. */
  run(): License {
    const events = this.episode.stored.events.filter(({ license }) => license === this.state.id)
    for (const group of grouped(events)) {
      if (isByClock(group[0]!)) this.moveOn(group[0]!)
      else this.place(group)
    }
    this.adoptQuiet()
    for (const order of this.episode.orders) if (!this.placed.has(order.request)) this.justify(order)
    this.adoptTimes()
    this.compare()
    return this.state
  }

  private go(state: License): void {
    this.state = state
    this.states.push(state)
  }

  /** The states that the one at hand may really be: as it is, with devices and leases as they were heard of in this step. */
  private variants(state: License): ReadonlyArray<License> {
    return [state, this.heard(state)]
  }

  private heard(state: License): License {
    const devices = Array.from(state.devices, ([key, device]) => {
      const validated = this.stored.devices.get(key)?.validated ?? null
      return [key, { ...device, validated }] as const
    })
    const leases = Array.from(state.leases, ([token, lease]) => {
      const ends = this.stored.leases.get(token)?.ends ?? lease.ends
      return [token, { ...lease, ends }] as const
    })
    return { ...state, devices: new Map(devices), leases: new Map(leases) }
  }

  private *situations(states: ReadonlyArray<License>, nows: ReadonlyArray<number>): Generator<Situation> {
    for (const state of states) {
      for (const around of this.episode.surroundings.toReversed()) {
        const policy = around.policies.get(state.policy)!
        for (const license of this.variants(state)) for (const now of nows) yield { license, around, policy, now }
      }
    }
  }

  /** A move that time has made: it must have been due, and is made once. */
  private moveOn(event: StoredEvent): void {
    if (event.type === "license.expiring") return
    for (const { license, policy, now } of this.situations([this.state], [event.at])) {
      const returned = { ...license, status: backByClock(license, clockStatus(license, policy, now)) }
      for (const from of [license, returned]) {
        const moved = moveByTime(from, policy, now, `${event.type} ${event.resource}`)
        if (moved !== undefined) return this.go(moved)
      }
    }
    violation(`${event.type} of ${event.resource} was recorded and not due on ${told(this.state)}`)
  }

  /** A command's events: the model must come to the same. */
  private place(group: ReadonlyArray<StoredEvent>): void {
    const { at, request } = group[0]!
    const order = this.episode.orders.find((one) => one.request === request)
    if (order === undefined) return violation(`events of a request that was not made in this step: ${told(group)}`)
    if (this.placed.has(request)) return violation(`${describe(order)} was done twice: ${told(group)}`)
    this.placed.add(request)
    if (!this.episode.nows.includes(at)) violation(`an event of a time that was not: ${told(group)}`)
    const seen: Array<string> = []
    for (const situation of this.situations([this.state], [at])) {
      const { license, now, policy } = situation
      // Whoever changes a license records what time had done to it before.
      if (dueMoves(license, policy, now).length > 0) {
        seen.push(`time has not been recorded: ${dueMoves(license, policy, now)}`)
        continue
      }
      const answer = this.expected(order, situation)
      const wrong = this.mismatch(order, answer, group)
      if (wrong === undefined) return this.go(answer.license)
      seen.push(wrong)
    }
    violation(`${describe(order)} left ${group.map(({ type }) => type)} on ${told(this.state)}:\n  ${[...new Set(seen)].join("\n  ")}`)
  }

  private expected(order: Order, { license, ...rest }: Situation): Answer {
    return verbs[order.verb].expected!({ ...rest, license: settled(license, rest.policy, rest.now) }, order.command)
  }

  private mismatch(order: Order, answer: Answer, group: ReadonlyArray<StoredEvent>): string | undefined {
    const types = group.map(({ type }) => type)
    if (!isDeepStrictEqual(types, answer.events)) return `the model leaves ${answer.events} (${answer.code ?? "accepted"})`
    const ledger = this.episode.stored.ledger
      .filter(({ license, request }) => license === this.state.id && request === order.request)
      .map(({ feature, action, amount, balance, max }) => ({ feature, action, amount, balance, max }))
    if (!isDeepStrictEqual(ledger, answer.ledger)) return `the ledger says ${told(ledger)}, the model ${told(answer.ledger)}`
    return this.misfit(order, answer)
  }

  /** Why an outcome is not the answer that the model expects. */
  private misfit(order: Order, answer: Answer): string | undefined {
    const outcome = this.episode.outcomes.get(order.request)!
    if (outcome.kind === "unknown") return undefined
    if (outcome.kind === "refused") {
      return outcome.code === answer.code ? undefined : `refused with ${outcome.code}, the model says ${answer.code}`
    }
    if (answer.code !== undefined) return `accepted, the model refuses with ${answer.code}`
    const reply = (outcome.reply ?? {}) as { readonly [member: string]: unknown }
    const wrong = Object.entries(answer.told).find(([member, value]) => !isDeepStrictEqual(reply[member], value))
    // A license is shown as of the moment of the answer, which may be later than that of the decision.
    if (wrong === undefined || (this.episode.nows.length > 1 && "times_activated" in reply)) return undefined
    return `told ${wrong[0]} ${told(reply[wrong[0]])}, the model says ${told(wrong[1])}`
  }

  /** An answer that left no event must be right in some state of the step. */
  private justify(order: Order): void {
    const outcome = this.episode.outcomes.get(order.request)!
    if (outcome.kind === "unknown") return
    if (outcome.kind === "refused" && outcome.code === "NOT_READY" && this.episode.isContended) return
    const seen: Array<string> = []
    for (const situation of this.situations(this.states, this.episode.nows)) {
      const answer = this.expected(order, situation)
      const wrong =
        answer.events.length > 0 ? `the model leaves ${answer.events}` : this.misfit(order, answer)
      if (wrong === undefined) return
      seen.push(wrong)
    }
    violation(
      `${describe(order)} was answered ${told(outcome)} without a trace, on ${told(this.states)}:\n  ${[...new Set(seen)].join("\n  ")}`
    )
  }

  /** What sweeps write down without an event: a state that an edit has set back, leases that ended with their license. */
  private adoptQuiet(): void {
    for (const { license, policy, now } of this.situations([this.state], this.episode.nows)) {
      const status = clockStatus(license, policy, now)
      if (this.state.status !== this.stored.status && backByClock(license, status) === this.stored.status) {
        this.go({ ...this.state, status: this.stored.status })
      }
      for (const [token, lease] of license.leases) {
        const isGone = this.state.leases.get(token)!.status === "live" && this.stored.leases.get(token)?.status === "ended"
        if (isGone && isCut(lease, license, policy, now)) this.go(endLease(this.state, token, "ended", "deactivated"))
      }
    }
  }

  /** When devices and leases were heard of last leaves no event: it must be what some order of the step has made it. */
  private adoptTimes(): void {
    const told = (order: Order, is: "told" | "unknown") => this.episode.outcomes.get(order.request)!.kind === is
    for (const [key, device] of this.state.devices) {
      const now = this.stored.devices.get(key)?.validated ?? null
      const heard = this.episode.orders.filter((order) => order.verb === "validate" && bindingOf(order) === key)
      const may = heard.some((order) => told(order, "told") || told(order, "unknown"))
      const must = heard.some((order) => told(order, "told"))
      if (now !== device.validated && !(may && this.episode.nows.includes(now ?? 0))) {
        violation(`${device.id} was heard of at ${now}, and nobody knows of it`)
      }
      if (must && (now ?? 0) <= Math.min(...this.episode.nows) - 1000) violation(`a validation of ${device.id} was not kept`)
    }
    for (const [token, lease] of this.state.leases) {
      const ends = this.stored.leases.get(token)?.ends
      if (ends === lease.ends) continue
      const speaks = this.episode.orders.filter(({ command }) => (command as { tokenHash?: string })?.tokenHash === token)
      const can = Array.from(this.situations(this.states, this.episode.nows), leaseEnd)
      const isTold = speaks.some((order) => told(order, "told") || told(order, "unknown"))
      if (!isTold || ends === undefined || !can.includes(ends)) violation(`the end of ${lease.id} is ${ends}, the model says ${lease.ends}`)
      this.state = { ...this.state, leases: replaced(this.state.leases, token, { ...lease, ends: ends! }) }
    }
    this.state = this.heard(this.state)
  }

  private compare(): void {
    for (const [member, value] of Object.entries(this.state)) {
      const row = this.stored[member as keyof License]
      if (isDeepStrictEqual(row, value)) continue
      const [found, wanted] = [row, value].map((one) => (one instanceof Map ? changed(one, one === row ? value : row) : one))
      violation(`${member} of ${this.state.id} is ${told(found)}, the model says ${told(wanted)}`)
    }
  }
}

const describe = ({ command, node, request, verb }: Order): string => `${request} (${verb} ${told(command)} at node ${node})`

const bindingOf = ({ command }: Order): string => {
  const { kind, key } = (command as { readonly binding: { readonly kind: string; readonly key: string } }).binding
  return `${kind}:${key}`
}

const stages = ["active", "grace_period", "expired"]

/** The clock's state where that is an earlier stage, else the state that there is. */
const backByClock = ({ status }: License, byClock: string): string =>
  stages.indexOf(byClock) < stages.indexOf(status) ? byClock : status

/** The entries of a map that another does not have. */
const changed = (map: Map<unknown, unknown>, other: unknown) =>
  new Map(Array.from(map).filter(([key, value]) => !isDeepStrictEqual((other as Map<unknown, unknown>).get(key), value)))
