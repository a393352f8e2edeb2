/** Decides at each checkpoint whether a fault occurs, with the probabilities of the plan. */

import type { Plan } from "../requests/Plan.ts"
import type { RandomSource } from "../requests/RandomSource.ts"
import { possible } from "./Faults.ts"
import type { FaultPlan } from "./Scheduler.ts"

/** `isOn` tells whether faults are enabled now. */
export const faultPlanOf = (plan: Plan, random: RandomSource, isOn: () => boolean): FaultPlan => ({
  isHeld: () => random.chance(plan.held),
  verdictOn: (checkpoint) => {
    // A transaction that the server finishes alone: commit and rollback are equally likely if it has received all of it.
    if (checkpoint.isAlone) return random.chance(0.5) && checkpoint.point === "commit" ? "pass" : "lost"
    const fault = isOn() ? possible(checkpoint).find((verdict) => random.chance(plan.faults[verdict])) : undefined
    return fault ?? "pass"
  }
})
