/** Flags of the programs for tests. */
import { Flag } from "effect/cli"

/** A whole number with a default. */
export const numberFlag = (name: string, value: number, text: string) =>
  Flag.Int(name).pipe(Flag.withDescription(text), Flag.withDefault(value))
