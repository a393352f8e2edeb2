/** What an event says: the fields that changed, and what else was recorded with it. */
import type { Schema } from "effect"
import { wordsOf } from "../parts/Format.ts"
import { Time } from "../parts/Show.tsx"

type Json = Schema.Json
type Members = Readonly<Record<string, Json>>

/** Of no use to a reader. */
const unshown: ReadonlySet<string> = new Set(["changes", "request_id"])

const isObject = (value: Json | undefined): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const Value = ({ name, of }: { readonly name: string; readonly of: Json | undefined }) => {
  if (of === undefined || of === null || of === "") return "empty"
  if (typeof of === "string" && name.endsWith("_at") && !Number.isNaN(Date.parse(of)))
    return <Time at={Date.parse(of)} />
  return typeof of === "object" ? JSON.stringify(of) : String(of)
}

export const Changes = ({ of }: { readonly of: Members }) => {
  const changes = isObject(of["changes"]) ? Object.entries(of["changes"]) : []
  const others = Object.entries(of).filter(([name]) => !unshown.has(name))
  return (
    <ul className="changes">
      {changes.map(([name, change]) => (
        <li key={name}>
          {wordsOf(name)}: <Value name={name} of={isObject(change) ? change["old"] : null} /> →{" "}
          <Value name={name} of={isObject(change) ? change["new"] : change} />
        </li>
      ))}
      {others.map(([name, value]) => (
        <li key={name}>
          {wordsOf(name)}: <Value name={name} of={value} />
        </li>
      ))}
    </ul>
  )
}
