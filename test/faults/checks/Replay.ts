/** The events and ledger rows of one license, replayed in their order: no limit was exceeded at any time. */
import { initialLimits } from "../load/Catalog.ts"
import type { EventRow, LedgerRow, LicenseRow, Rows } from "./Rows.ts"

export const replayed = (license: LicenseRow, rows: Rows): ReadonlyArray<string> => {
  const own = <A extends { readonly license_id: string }>(all: ReadonlyArray<A>) =>
    all.filter(({ license_id }) => license_id === license.id)
  return [
    ...replayEvents(license, own(rows.events), own(rows.leases).filter(({ status }) => status === "live").length),
    ...replayLedger(license, own(rows.ledger))
  ]
}

interface State {
  max_activations: number
  max_floating_users: number
  active: number
  isSuspended: boolean
  readonly seats: Set<string>
  readonly found: Array<string>
}

const limitOf = (change: { readonly new?: unknown } | undefined, limit: number) =>
  typeof change?.new === "number" ? change.new : limit

const transitions: Readonly<Record<string, (state: State, event: EventRow) => void>> = {
  "license.activated": (state, { sequence }) => {
    state.active++
    if (state.active > state.max_activations)
      state.found.push(`event ${sequence}: ${state.active} activations of ${state.max_activations}`)
  },
  "license.deactivated": (state) => void state.active--,
  "license.suspended": (state, { sequence }) => {
    if (state.isSuspended) state.found.push(`event ${sequence}: suspended twice`)
    state.isSuspended = true
    state.seats.clear()
  },
  "license.reinstated": (state, { sequence }) => {
    if (!state.isSuspended) state.found.push(`event ${sequence}: reinstated without a suspension`)
    state.isSuspended = false
  },
  "license.updated": (state, { metadata: { changes } }) => {
    state.max_activations = limitOf(changes?.["max_activations"], state.max_activations)
    state.max_floating_users = limitOf(changes?.["max_floating_users"], state.max_floating_users)
  },
  "lease.checked_out": (state, { metadata, resource_id, sequence }) => {
    if (metadata.superseded !== undefined && !state.seats.delete(metadata.superseded))
      state.found.push(`event ${sequence}: supersedes ${metadata.superseded}, which holds no seat`)
    state.seats.add(resource_id)
    const { size } = state.seats
    // The holder of a seat gets it back also beyond a limit that was lowered.
    if (metadata.superseded === undefined && size > state.max_floating_users)
      state.found.push(`event ${sequence}: ${size} seats of ${state.max_floating_users}`)
  },
  "lease.checked_in": giveBack,
  "lease.expired": giveBack
}

function giveBack(state: State, { resource_id, sequence }: EventRow) {
  if (!state.seats.delete(resource_id))
    state.found.push(`event ${sequence}: ${resource_id} is given back and holds no seat`)
}

/** Changes while suspended would be answers that the runtime must refuse. */
const isUse = /^(license\.activated|lease\.checked_out|usage\.consumed)$/

const replayEvents = (license: LicenseRow, events: ReadonlyArray<EventRow>, liveLeases: number) => {
  const state: State = { ...initialLimits, active: 0, isSuspended: false, seats: new Set(), found: [] }
  for (const event of events) {
    if (state.isSuspended && isUse.test(event.event_type))
      state.found.push(`event ${event.sequence}: ${event.event_type} while suspended`)
    transitions[event.event_type]?.(state, event)
  }
  const pairs: ReadonlyArray<readonly [string, unknown, unknown]> = [
    ["activations", state.active, license.active_device_count],
    ["seats", state.seats.size, liveLeases],
    ["suspended", state.isSuspended, license.status === "suspended"]
  ]
  const differences = pairs.flatMap(([what, one, other]) =>
    one === other ? [] : [`${what} by the events: ${one}, by the rows: ${other}`]
  )
  return [...state.found, ...differences].map((what) => `${license.id}: ${what}`)
}

/** What a row makes of the balance before it. */
const balances: Readonly<Record<string, (before: number, row: LedgerRow) => number>> = {
  consume: (before, { amount }) => before + amount,
  reset: () => 0,
  top_up: (before) => before,
  set_limit: (before) => before
}

const replayLedger = (license: LicenseRow, ledger: ReadonlyArray<LedgerRow>) => {
  let balance = 0
  return ledger.flatMap((row) => {
    const wanted = balances[row.action]?.(balance, row)
    const before = balance
    balance = row.balance_after
    const where = `${license.id}: ledger ${row.sequence}`
    if (row.balance_after !== wanted) return [`${where}: ${row.action} of ${row.amount} at ${before} leaves ${balance}`]
    return row.action === "consume" && row.max_after !== null && balance > row.max_after
      ? [`${where}: ${balance} of ${row.max_after} are used`]
      : []
  })
}
