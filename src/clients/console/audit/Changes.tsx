/** What an event says: the fields that changed, and what else was recorded with it. */
import type { Schema } from "effect"
import { wordsOf } from "../parts/Format.ts"
import { isChange, isMembers } from "./Differences.ts"
import { Value } from "./Value.tsx"

type Members = Readonly<Record<string, Schema.Json>>

/** A value, or an old and a new one. */
const Member = ({ name, of }: { readonly name: string; readonly of: Schema.Json }) =>
  isChange(of) ? (
    <>
      <Value name={name} of={of.old} /> → <Value name={name} of={of.new} />
    </>
  ) : (
    <Value name={name} of={of} />
  )

export const Changes = ({ of }: { readonly of: Members }) => {
  const { changes, ...others } = of
  const members = Object.entries({ ...(isMembers(changes) ? changes : {}), ...others })
  return (
    <ul className="changes">
      {members
        .filter(([name]) => name !== "request_id" && name !== "feature_code")
        .map(([name, value]) => (
          <li key={name}>
            {wordsOf(name.replace(/_id$/, ""))}: <Member name={name} of={value} />
          </li>
        ))}
    </ul>
  )
}
