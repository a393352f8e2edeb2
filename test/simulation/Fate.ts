/** What the dice decide about those who come to the gate, with the chances of the plan. */
import type { Dice } from "./Dice.ts"
import { possible } from "./Faults.ts"
import type { Fate } from "./Gate.ts"
import type { Plan } from "./Plan.ts"

/** `isOn` tells whether anything may go wrong at the moment. */
export const fateOf = (plan: Plan, dice: Dice, isOn: () => boolean): Fate => ({
  isHeld: () => dice.chance(plan.held),
  judge: (visit) => {
    // One that the server decides about alone: either is as likely, where it has all of it.
    if (visit.isAlone) return dice.chance(0.5) && visit.point === "commit" ? "pass" : "lost"
    const fault = isOn() ? possible(visit).find((verdict) => dice.chance(plan.faults[verdict])) : undefined
    return fault ?? "pass"
  }
})
