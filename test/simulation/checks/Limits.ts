/** Checks limits by the rows alone: usage never exceeds the highest limit that applied in the step. */

import { type Limits, limitsFor, type OwnLimits } from "../model/Limits.ts"
import { type License, liveLeases } from "../model/Model.ts"
import type { Call } from "../requests/Operations.ts"
import type { CatalogPeriod } from "./LicenseStep.ts"
import type { Stored } from "./Rows.ts"
import { violation } from "./Violation.ts"

interface Limit {
  readonly what: string
  readonly taken: (license: License) => number
  readonly max: (limits: Limits) => number
}

const orUnlimited = (max: number): number => (max === 0 ? Number.POSITIVE_INFINITY : max)

const slots = (license: License, kind?: "hardware" | "container"): number =>
  Array.from(license.devices.values()).filter((device) => device.slot && (kind ?? device.kind) === device.kind).length

const limits: ReadonlyArray<Limit> = [
  {
    what: "seats",
    taken: (license) => liveLeases(license).length,
    max: ({ max_floating_users }) => max_floating_users ?? 0
  },
  {
    what: "activations of hardware",
    taken: (license) => slots(license, "hardware"),
    max: ({ max_activations }) => orUnlimited(max_activations)
  },
  {
    what: "activations of containers",
    taken: (license) => slots(license, "container"),
    max: ({ max_activations, max_container_instances }) => orUnlimited(max_container_instances ?? max_activations)
  },
  {
    what: "activations",
    taken: (license) => slots(license),
    max: ({ max_activations, max_container_instances }) =>
      max_container_instances === null ? orUnlimited(max_activations) : Number.POSITIVE_INFINITY
  }
]

/** All limits of its own that a license may have had in the step. */
const ownLimitsOf = (license: string, before: Stored, after: Stored, calls: ReadonlyArray<Call>) => {
  const edits = calls.filter(({ operation, subject }) => operation === "update" && subject === license)
  const commands = edits.map(({ command }) => command as Partial<OwnLimits>)
  const [was, is] = [before.licenses.get(license)!, after.licenses.get(license)!]
  const values = (name: keyof OwnLimits) =>
    [was, is, ...commands].flatMap(({ [name]: value }) => (value === undefined ? [] : [value]))
  return values("max_activations").flatMap((max_activations) =>
    values("max_container_instances").flatMap((max_container_instances) =>
      values("max_floating_users").map((max_floating_users) => ({
        ...is,
        max_activations,
        max_container_instances,
        max_floating_users
      }))
    )
  )
}

/** The policies that a license may have had in the step. */
const policiesOf = (
  { catalog: { policies } }: CatalogPeriod,
  license: string,
  before: Stored,
  calls: ReadonlyArray<Call>
) => {
  const moves = calls.some(({ operation, subject }) => operation === "change policy" && subject === license)
  return moves ? Array.from(policies.values()) : [policies.get(before.licenses.get(license)!.policy)!]
}

/** A lowered limit does not revoke anything, so earlier usage may exceed it. */
export const checkLimits = (
  before: Stored,
  after: Stored,
  periods: ReadonlyArray<CatalogPeriod>,
  calls: ReadonlyArray<Call>
): void => {
  for (const license of after.licenses.values()) {
    const { id } = license
    const held = periods
      .flatMap((period) => policiesOf(period, id, before, calls))
      .flatMap((policy) => ownLimitsOf(id, before, after, calls).map((own) => limitsFor(own, policy)))
    for (const { max, taken, what } of limits) {
      const highest = Math.max(...held.map(max))
      const allowed = Math.max(highest, taken(before.licenses.get(id)!))
      if (taken(license) > allowed)
        violation(`${what} of ${license.id}: ${taken(license)} are taken, ${highest} is the limit`)
    }
  }
}
