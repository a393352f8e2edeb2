/** What an event is about: by the name that it has now, or by what the event recorded of it. */
import type { Event } from "../../../ledger/events/Event.ts"
import { sentenceOf } from "../parts/Format.ts"
import { DeviceName, isNamed, RecordName } from "../parts/Names.tsx"

const nouns: Readonly<Record<string, string>> = {
  lease: "Floating seat of",
  portal_session: "The customer’s page"
}

export const nounOf = ({ resource_type }: Event): string => nouns[resource_type] ?? sentenceOf(resource_type)

export const EventRecord = ({ of: { metadata, resource_id, resource_type } }: { readonly of: Event }) => {
  if (resource_id === undefined) return "–"
  const { code, device_id = resource_id, license_id: license, name, version } = metadata
  if ((resource_type === "device" || resource_type === "lease") && typeof license === "string")
    return <DeviceName id={String(device_id)} license={license} />
  if (resource_type === "portal_session" && typeof license === "string")
    return <RecordName field="license_id" id={license} />
  const field = `${resource_type}_id`
  const recorded = [name, code, version].find((text) => typeof text === "string")
  if (recorded !== undefined && !isNamed(field)) return <span title={resource_id}>{recorded}</span>
  return <RecordName field={field} id={resource_id} />
}
