/** What the dice decide about those who come to the gate, with the chances of the plan. */

import { possible } from "./Faults.ts"
import type { Plan } from "./Plan.ts"
import type { RandomSource } from "./RandomSource.ts"
import type { FaultPlan } from "./Scheduler.ts"

/** `isOn` tells whether anything may go wrong at the moment. */
export const faultPlanOf = (plan: Plan, random: RandomSource, isOn: () => boolean): FaultPlan => ({
  isHeld: () => random.chance(plan.held),
  verdictOn: (checkpoint) => {
    // One that the server decides about alone: either is as likely, where it has all of it.
    if (checkpoint.isAlone) return random.chance(0.5) && checkpoint.point === "commit" ? "pass" : "lost"
    const fault = isOn() ? possible(checkpoint).find((verdict) => random.chance(plan.faults[verdict])) : undefined
    return fault ?? "pass"
  }
})
