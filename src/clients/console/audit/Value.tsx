/** A value that an event recorded, as a person reads it. */
import type { Schema } from "effect"
import { countOf, wordsOf } from "../parts/Format.ts"
import { RecordName } from "../parts/Names.tsx"
import { Time } from "../parts/Show.tsx"
import { isEmpty, isMembers, type Members } from "./Differences.ts"

interface Props {
  readonly name: string
  readonly of: Schema.Json | undefined
  /** Instants are shown with their time, not as days. */
  readonly isExact?: boolean
}

export const Value = ({ isExact = false, name, of }: Props) => {
  if (of === undefined || of === null || of === "") return "none"
  if (typeof of === "boolean") return of ? "yes" : "no"
  if (typeof of === "number") return countOf(of)
  if (typeof of === "string") {
    if (/_(?:at|start|end)$/.test(name) && !Number.isNaN(Date.parse(of))) {
      return <Time at={Date.parse(of)} {...(!isExact && { only: "day" as const })} />
    }
    if (name.endsWith("_id")) return <RecordName field={name} id={of} />
    return /(?:^|_)(?:status|type)$/.test(name) ? wordsOf(of) : of
  }
  return isMembers(of) ? wordsIn(of) : JSON.stringify(of)
}

const terms: Readonly<Record<string, string>> = {
  enabled: "included",
  max_consumptions: "quota",
  reset_period: "begins anew each",
  overage_max: "overage",
  rollover_max: "carried over at most"
}

/** The members of a record, as a feature with its quota; those without a value are left out. */
const wordsIn = (members: Members): string =>
  Object.entries(members)
    .filter(([, value]) => !isEmpty(value))
    .map(
      ([name, value]) =>
        `${terms[name] ?? wordsOf(name)} ${typeof value === "object" ? JSON.stringify(value) : plain(value)}`
    )
    .join(", ") || "none"

const plain = (value: string | number | boolean) =>
  typeof value === "boolean" ? (value ? "yes" : "no") : typeof value === "number" ? countOf(value) : value
