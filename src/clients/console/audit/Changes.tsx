/** What an event says: the fields that changed, and what else was recorded with it. */
import type { Schema } from "effect"
import type { NameOf } from "../parts/FeatureNames.ts"
import { DeviceName } from "../parts/Names.tsx"
import { isChange, type Members, memberOf, recordedIn } from "./Differences.ts"
import { Value } from "./Value.tsx"

interface MemberProps {
  readonly name: string
  readonly of: Schema.Json
  readonly isExact?: boolean
}

/** A value, or an old and a new one. */
export const Member = ({ of, ...shown }: MemberProps) =>
  isChange(of) ? (
    <>
      <Value {...shown} of={of.old} /> → <Value {...shown} of={of.new} />
    </>
  ) : (
    <Value {...shown} of={of} />
  )

const terms: Readonly<Record<string, string>> = { balance_after: "used in all", max_after: "quota" }

/** Not for people: what joins the records of one request. */
const hidden: ReadonlySet<string> = new Set(["request_id", "event_id", "feature_code"])

interface Props {
  readonly of: Members
  /** Whose devices it names. */
  readonly license?: string
  /** Names its features. */
  readonly nameOf?: NameOf
}

export const Changes = ({ license, nameOf = (code) => code, of }: Props) => (
  <ul className="changes">
    {recordedIn(of)
      .filter(([name]) => !hidden.has(name))
      .map(([name, value]) => (
        <li key={name}>
          {terms[name] ?? memberOf(name, nameOf)}:{" "}
          {name === "device_id" && license !== undefined && typeof value === "string" ? (
            <DeviceName id={value} license={license} />
          ) : (
            <Member name={name} of={value} />
          )}
        </li>
      ))}
  </ul>
)
