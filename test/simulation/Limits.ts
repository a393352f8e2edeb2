/** Checks limits by the rows alone: usage never exceeds the highest limit that applied in the step. */
import type { CatalogPeriod } from "./LicenseStep.ts"
import { type License, liveLeases, type Policy } from "./model/Model.ts"
import type { Stored } from "./Rows.ts"
import { violation } from "./Violation.ts"

interface Limit {
  readonly what: string
  readonly taken: (license: License) => number
  readonly max: (policy: Policy) => number
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

/** A lowered limit does not revoke anything, so earlier usage may exceed it. */
export const checkLimits = (before: Stored, after: Stored, periods: ReadonlyArray<CatalogPeriod>): void => {
  for (const license of after.licenses.values()) {
    for (const { max, taken, what } of limits) {
      const highest = Math.max(...periods.map(({ catalog }) => max(catalog.policies.get(license.policy)!)))
      const allowed = Math.max(highest, taken(before.licenses.get(license.id)!))
      if (taken(license) > allowed)
        violation(`${what} of ${license.id}: ${taken(license)} are taken, ${highest} is the limit`)
    }
  }
}
