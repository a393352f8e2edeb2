/** What a change of a license would do, in its dialog, before it is made. */

import { Cause, Exit } from "effect"
import type { License } from "../../../licensing/model/License.ts"
import { countOf } from "../parts/Format.ts"
import { Lines } from "../parts/Show.tsx"
import { inWords, isFinal, tell } from "../service/Failures.ts"
import { type Difference, differencesOf, type Preview } from "./Differences.ts"
import { type Change, usePreview } from "./UsePreview.ts"

interface Props {
  readonly id: string
  readonly change: Change
}

export const Consequences = ({ change, id }: Props) => {
  const shown = usePreview(id, change)
  return (
    <div className="consequences" role="status" aria-label="What changes" aria-busy={shown?.isCurrent !== true}>
      {shown === undefined ? (
        <p className="quiet">Asking what would change…</p>
      ) : Exit.isSuccess(shown.exit) ? (
        <Shown preview={shown.exit.value} />
      ) : (
        <>
          <p className="quiet">What would change cannot be shown. {inWords(tell(shown.exit.cause).message)}</p>
          {!isFinal(Cause.squash(shown.exit.cause)) && (
            <button type="button" className="small" onClick={shown.again}>
              Try again
            </button>
          )}
        </>
      )}
    </div>
  )
}

const Shown = ({ preview }: { readonly preview: Preview }) => {
  const { admitted, changed, message = "" } = preview
  if (!admitted) return <p className="failed">This would be refused. {inWords(message)}</p>
  if (!changed) return <p className="quiet">Nothing would change: the license is already in this state.</p>
  const differences = differencesOf(preview)
  if (differences.length === 0)
    return <p className="quiet">Owner, dates, limits, features and what is in use stay as they are.</p>
  return <DifferenceList of={differences} />
}

const DifferenceList = ({ of }: { readonly of: ReadonlyArray<Difference> }) => (
  <Lines
    of={of.map(({ after, before, name, note }) => [
      name,
      <>
        <span className="quiet">{before}</span> → <strong>{after}</strong>
        {note !== undefined && <small>{note}</small>}
      </>
    ])}
  />
)

/** Which key ends, and how many devices must enter the new one. Needs no preview, because a new key changes nothing else. */
export const KeyReplaced = ({ license }: { readonly license: License }) => {
  const { active_device_count: devices, license_key_last4, license_key_prefix } = license
  return (
    <div className="consequences">
      <DifferenceList
        of={[
          {
            name: "Key",
            before: `${license_key_prefix}…${license_key_last4}`,
            after: "a new one",
            note:
              devices === 0
                ? "No device is active"
                : `${countOf(devices)} active ${devices === 1 ? "device needs" : "devices need"} it to go on`
          }
        ]}
      />
    </div>
  )
}
