/**
 * Holds what callers were told and what was recorded against the model. The events of a license are the order in which it was
 * changed: each is replayed on the model, which must come to the same events, ledger rows and answers. An answer that left no
 * event must be right in one of the states that the license went through meanwhile; and what the events have made of the
 * license must be what its rows say. Where the events leave it open what the license was, all that it can have been is tried.
 */
import { isDeepStrictEqual } from "node:util"
import type { Episode } from "./Episode.ts"
import { type Answer, clockStatus, dueMoves, type License, moveByTime, type Situation, settled } from "./model/Model.ts"
import { adoptQuiet, adoptTimes, asHeard, backByClock, compare } from "./Reconcile.ts"
import type { StoredEvent } from "./Rows.ts"
import { type Order, verbs } from "./Verbs.ts"
import { brief, told, Violation, violation } from "./Violation.ts"

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

const anyTime = Number.POSITIVE_INFINITY

export class Replay {
  private readonly episode: Episode
  private readonly stored: License
  /** What the license can be. */
  private current: ReadonlyArray<License>
  /** All that it can have been. */
  private readonly states: Array<License>
  private readonly placed = new Set<string>()

  constructor(episode: Episode) {
    this.episode = episode
    this.current = [episode.before]
    this.states = [episode.before]
    this.stored = episode.stored.licenses.get(episode.before.id)!
  }

  /** Ends with a violation where this can not be. */
  run(): void {
    const { before, orders, stored } = this.episode
    for (const group of grouped(stored.events.filter(({ license }) => license === before.id))) {
      if (isByClock(group[0]!)) this.moveOn(group[0]!)
      else this.place(group)
    }
    this.go(this.current.map((license) => adoptQuiet(license, this.stored, this.situations([license]))))
    for (const order of orders) if (!this.placed.has(order.request)) this.justify(order)
    this.reconcile()
  }

  private go(next: ReadonlyArray<License>): void {
    this.current = next.filter((one, index) => next.findIndex((other) => isDeepStrictEqual(one, other)) === index)
    this.states.push(...this.current)
  }

  /** All on which something can have been decided: no later than an event, if it left one. */
  private *situations(states: ReadonlyArray<License>, nows = this.episode.nows, upTo = anyTime): Generator<Situation> {
    for (const { around, since } of this.episode.eras.toReversed()) {
      if (since > upTo) continue
      for (const state of states) {
        const policy = around.policies.get(state.policy)!
        for (const license of [state, asHeard(state, this.stored)]) {
          for (const now of nows) yield { license, around, policy, now }
        }
      }
    }
  }

  /** A move that time has made: it must have been due, and is made once. */
  private moveOn(event: StoredEvent): void {
    if (event.type === "license.expiring") return
    const next: Array<License> = []
    for (const { license, policy, now } of this.situations(this.current, [event.at], event.sequence)) {
      const returned = { ...license, status: backByClock(license, clockStatus(license, policy, now)) }
      for (const from of [license, returned]) {
        const moved = moveByTime(from, policy, now, `${event.type} ${event.resource}`)
        if (moved !== undefined) next.push(moved)
      }
    }
    if (next.length === 0)
      violation(`${event.type} of ${event.resource} was recorded and not due on ${told(this.current)}`)
    this.go(next)
  }

  /** A command's events: the model must come to the same. */
  private place(group: ReadonlyArray<StoredEvent>): void {
    const { at, request, sequence } = group[0]!
    const order = this.episode.orders.find((one) => one.request === request)
    if (order === undefined) violation(`events of a request that was not made in this step: ${told(group)}`)
    if (this.placed.has(request)) violation(`${describe(order)} was done twice: ${told(group)}`)
    this.placed.add(request)
    if (!this.episode.nows.includes(at)) violation(`an event of a time that was not: ${told(group)}`)
    const seen = new Set<string>()
    const next: Array<License> = []
    for (const situation of this.situations(this.current, [at], sequence)) {
      const answer = this.expected(order, situation)
      const wrong = unrecorded(situation) ?? this.mismatch(order, answer, group)
      if (wrong === undefined) next.push(answer.license)
      else seen.add(wrong)
    }
    if (next.length === 0) {
      const left = group.map(({ type }) => type)
      violation(`${describe(order)} left ${left} on ${told(this.current)}:\n  ${[...seen].join("\n  ")}`)
    }
    this.go(next)
  }

  private expected(order: Order, { license, ...rest }: Situation): Answer {
    return verbs[order.verb].expected!({ ...rest, license: settled(license, rest.policy, rest.now) }, order.command)
  }

  private mismatch(order: Order, answer: Answer, group: ReadonlyArray<StoredEvent>): string | undefined {
    const types = group.map(({ type }) => type)
    if (!isDeepStrictEqual(types, answer.events))
      return `the model leaves ${answer.events} (${answer.code ?? "accepted"})`
    const ledger = this.episode.stored.ledger
      .filter(({ license, request }) => license === this.stored.id && request === order.request)
      .map(({ feature, action, amount, balance, max }) => ({ feature, action, amount, balance, max }))
    if (!isDeepStrictEqual(ledger, answer.ledger))
      return `the ledger says ${told(ledger)}, the model ${told(answer.ledger)}`
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
    const seen = new Set<string>()
    for (const situation of this.situations(this.states)) {
      const answer = this.expected(order, situation)
      const wrong = answer.events.length > 0 ? `the model leaves ${answer.events}` : this.misfit(order, answer)
      if (wrong === undefined) return
      seen.add(wrong)
    }
    violation(
      `${describe(order)} was answered ${told(outcome)} and left nothing, on ${told(this.states)}:\n  ${[...seen].join("\n  ")}`
    )
  }

  /** One of what the license can be must be what its rows say. */
  private reconcile(): void {
    const failures = this.current.flatMap((license) => {
      try {
        compare(adoptTimes(license, this.stored, this.episode, this.situations(this.states)), this.stored)
        return []
      } catch (error) {
        if (error instanceof Violation) return [error]
        throw error
      }
    })
    if (failures.length === this.current.length) throw failures[0]!
  }
}

/** Whoever changes a license records what time had done to it before. */
const unrecorded = ({ license, now, policy }: Situation): string | undefined => {
  const due = dueMoves(license, policy, now)
  return due.length > 0 ? `not recorded: ${due}` : undefined
}

const describe = ({ command, node, request, verb }: Order): string =>
  `${request} (${verb} ${brief(command)} at node ${node})`
