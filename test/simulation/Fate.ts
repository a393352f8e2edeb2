/** What the dice decide about those who come to the gate, with the chances of the plan. */
import type { Dice } from "./Dice.ts"
import type { Verdict, Visit } from "./Faults.ts"
import type { Fate } from "./Gate.ts"
import type { Plan } from "./Plan.ts"

/** What can happen where. A load is not tried again, so it only ever loses its connection. */
const possible = ({ point, what, isAlone }: Visit): ReadonlyArray<Exclude<Verdict, "pass">> => {
  if (isAlone || point !== "commit") return ["lost"]
  if (what === "load") return ["lost", "cut"]
  return ["lost", "serialization", "deadlock", "refused", "cut", "unacknowledged", "undecided"]
}

/** `isOn` tells whether anything may go wrong at the moment. */
export const fateOf = (plan: Plan, dice: Dice, isOn: () => boolean): Fate => ({
  isHeld: () => dice.chance(plan.held),
  judge: (visit) => {
    // One that the server decides about alone: either is as likely.
    if (visit.isAlone) return dice.chance(0.5) ? "pass" : "lost"
    const fault = isOn() ? possible(visit).find((verdict) => dice.chance(plan.faults[verdict])) : undefined
    return fault ?? "pass"
  }
})
