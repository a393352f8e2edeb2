/** The instants at which something of a license ends: time jumps lead next to them. */
import { accessEnd, type License, liveLeases, type Policy } from "../model/Model.ts"

export const endsOf = (license: License, policy: Policy): ReadonlyArray<number> => [
  license.expires ?? 0,
  license.starts ?? 0,
  accessEnd(license, policy),
  ...liveLeases(license).flatMap(([, { borrowed, ends }]) => [ends, borrowed ?? ends]),
  ...Array.from(license.devices.values(), ({ due }) => Math.max(due ?? 0, license.floor ?? 0, policy.floor ?? 0)),
  ...Array.from(license.devices.values(), ({ held }) => held ?? 0),
  ...Array.from(license.assignments.values(), ({ expires }) => expires ?? 0),
  ...resetsOf(license)
]

/** When the periods of its quotas end. */
export const resetsOf = ({ assignments }: License): ReadonlyArray<number> =>
  Array.from(assignments.values(), ({ resets }) => resets ?? 0)
