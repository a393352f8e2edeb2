/** What an event says: the fields that changed, and what else was recorded with it. */
import type { Schema } from "effect"
import { wordsOf } from "../parts/Format.ts"
import { Time } from "../parts/Show.tsx"

type Json = Schema.Json
type Members = Readonly<Record<string, Json>>

const isObject = (value: Json | undefined): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const Value = ({ name, of }: { readonly name: string; readonly of: Json | undefined }) => {
  if (of === undefined || of === null || of === "") return "empty"
  if (typeof of === "string" && name.endsWith("_at") && !Number.isNaN(Date.parse(of)))
    return <Time at={Date.parse(of)} />
  return typeof of === "object" ? JSON.stringify(of) : String(of)
}

/** A value, or an old and a new one. */
const Member = ({ name, of }: { readonly name: string; readonly of: Json }) =>
  isObject(of) && "old" in of && "new" in of ? (
    <>
      <Value name={name} of={of["old"]} /> → <Value name={name} of={of["new"]} />
    </>
  ) : (
    <Value name={name} of={of} />
  )

export const Changes = ({ of }: { readonly of: Members }) => {
  const { changes, ...others } = of
  const members = Object.entries({ ...(isObject(changes) ? changes : {}), ...others })
  return (
    <ul className="changes">
      {members
        .filter(([name]) => name !== "request_id")
        .map(([name, value]) => (
          <li key={name}>
            {wordsOf(name)}: <Member name={name} of={value} />
          </li>
        ))}
    </ul>
  )
}
