/** A value that an event recorded, as a person reads it. */
import type { Schema } from "effect"
import { countOf, wordsOf } from "../parts/Format.ts"
import { RecordLink } from "../parts/RecordLink.tsx"
import { Time } from "../parts/Show.tsx"

interface Props {
  readonly name: string
  readonly of: Schema.Json | undefined
}

export const Value = ({ name, of }: Props) => {
  if (of === undefined || of === null || of === "") return "none"
  if (typeof of === "boolean") return of ? "yes" : "no"
  if (typeof of === "number") return countOf(of)
  if (typeof of === "string") {
    if (name.endsWith("_at") && !Number.isNaN(Date.parse(of))) return <Time at={Date.parse(of)} only="day" />
    if (name.endsWith("_id")) return <RecordLink field={name} id={of} />
    return name === "status" ? wordsOf(of) : of
  }
  return JSON.stringify(of)
}
